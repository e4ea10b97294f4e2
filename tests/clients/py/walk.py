"""Walks through IMAP with Python's imaplib in one mailbox, and prints as JSON
what it was told, so that two servers or two mailboxes can be compared.

usage: walk.py PORT CERTIFICATE USER PASSWORD MAILBOX

The mailbox must be empty and is left empty. What servers may choose freely is
left out: texts, UIDVALIDITY, \\Recent, the order of flags, the mailbox's name.
"""

import imaplib
import json
import re
import ssl
import sys

port, certificate, user, password, mailbox = sys.argv[1:]
context = ssl.create_default_context(cafile=certificate)
seen = []


def connect():
    session = imaplib.IMAP4_SSL("localhost", int(port), ssl_context=context, timeout=30)
    session.login(user, password)
    return session


def in_order(flags):
    return " ".join(sorted(f for f in flags.split() if f != "\\Recent"))


def plain(value):
    """An answer without what may differ."""
    if isinstance(value, bytes):
        text = value.decode("utf-8", "surrogateescape").encode("ascii", "backslashreplace").decode()
        text = re.sub(r"(APPENDUID|COPYUID) \d+", r"\1 n", text)
        text = re.sub(r"FLAGS \(([^)]*)\)", lambda m: f"FLAGS ({in_order(m.group(1))})", text)
        return re.sub(r"FIELDS(\.NOT)? \([^)]*\)", lambda m: m.group(0).upper(), text)
    if isinstance(value, (list, tuple)):
        return [plain(v) for v in value]
    return value


def step(name, answer, data=True):
    """Notes an answer. A tagged OK's text is the server's own."""
    status, values = answer
    seen.append([name, status, plain(values) if data and status == "OK" else None])
    return values


def untagged(session, name):
    seen.append(["untagged " + name, plain(session.response(name)[1])])


def counts(session, items):
    """STATUS without the mailbox's name, which may be quoted or not."""
    status, values = session.status(name, items)
    return status, [re.sub(rb"^.*? \(", b"(", values[0])]


def message(n, text, more=""):
    return (
        f"From: Ann <ann{n}@example.com>\r\nTo: Alice <alice@example.test>\r\nCc: carl@example.net\r\n"
        f"Subject: Walk {n}\r\nDate: Mon, {n} Jun 2026 10:00:00 +0200\r\nMessage-ID: <walk{n}@example.com>\r\n"
        f"{more}\r\n{text}\r\n"
    ).encode()


name = f'"{mailbox}"'
mixed = (
    "MIME-Version: 1.0\r\nContent-Type: multipart/mixed; boundary=b\r\n",
    "--b\r\nContent-Type: text/plain; charset=utf-8\r\n\r\nfirst: Größe\r\n--b\r\nContent-Type: message/rfc822\r\n\r\n"
    "From: inner@example.net\r\nSubject: Inner\r\n\r\ninside\r\n--b\r\nContent-Type: application/pdf; name=a.pdf\r\n"
    "Content-Transfer-Encoding: base64\r\nContent-Disposition: attachment; filename=a.pdf\r\n\r\nJVBERg==\r\n--b--",
)
messages = [
    message(1, "one"),
    message(2, ".dots\r\n..\r\nand marzipan"),
    message(3, mixed[1], mixed[0]),
    message(4, "", "X-Empty:\r\n"),
    message(5, "Größe " * 30, "Content-Type: text/plain; charset=utf-8\r\nContent-Transfer-Encoding: 8bit\r\n"),
    message(6, "x" * 5000),
]
session, other = connect(), connect()
step("empty select", session.select(name))
step("empty search", session.uid("SEARCH", "ALL"))
step("empty fetch", session.uid("FETCH", "1:*", "(FLAGS)"))
flags = ["", "(\\Seen)", "(\\Flagged $Work)", "(\\Draft)", "(\\Answered \\Seen)", ""]
for n, octets in enumerate(messages):
    answer = session.append(name, flags[n], f'" {n + 1}-Jun-2026 10:0{n}:00 +0200"', octets)
    code = re.search(rb"\[(APPENDUID [^\]]*)\]", answer[1][0])
    step(f"append {n}", (answer[0], [code.group(1)] if code else None))
step("noop", session.noop(), data=False)
untagged(session, "EXISTS")
step("reselect", session.select(name))
first = int(session.response("UIDNEXT")[1][0]) - len(messages)
step("status", counts(session, "(MESSAGES UNSEEN UIDNEXT)"))
all_of_them = f"{first}:*"
for items in [
    "(FLAGS)", "(UID FLAGS INTERNALDATE RFC822.SIZE)", "ALL", "FAST", "FULL", "(ENVELOPE)", "(BODYSTRUCTURE)", "(BODY)",
    "(BODY.PEEK[])", "(BODY.PEEK[HEADER])", "(BODY.PEEK[TEXT])", "(BODY.PEEK[1])", "(BODY.PEEK[1.MIME])",
    "(BODY.PEEK[2])", "(BODY.PEEK[2.HEADER])", "(BODY.PEEK[2.TEXT])", "(BODY.PEEK[2.1])", "(BODY.PEEK[3.MIME])",
    "(BODY.PEEK[HEADER.FIELDS (Subject CC)])", "(BODY.PEEK[HEADER.FIELDS.NOT (Subject Date Message-ID)])",
    "(BODY.PEEK[]<0.20>)", "(BODY.PEEK[]<100.20>)", "(BODY.PEEK[]<5000.2000>)", "(BODY.PEEK[]<99999.10>)",
    "(BODY.PEEK[TEXT]<3.4>)", "(BODY.PEEK[HEADER]<5.10>)", "(RFC822.HEADER)", "(BODY.PEEK[] FLAGS)",
]:
    by_uid = items[0] == "("
    step("fetch " + items, session.uid("FETCH", all_of_them, items) if by_uid else session.fetch("1:*", items))
for keys in [
    "ALL", "SEEN", "UNSEEN", "FLAGGED", "UNFLAGGED", "ANSWERED", "UNANSWERED", "DRAFT", "UNDRAFT", "DELETED", "UNDELETED",
    "KEYWORD $Work", "UNKEYWORD $Work", "KEYWORD nobody", "SUBJECT walk", "SUBJECT \"Walk 3\"", "FROM ann2", "TO alice",
    "CC carl", "BCC x", "BODY marzipan", "TEXT marzipan", "TEXT ann5", "BODY ann5", "HEADER X-Empty \"\"",
    "HEADER Message-ID walk4", "HEADER Nothing \"\"", "LARGER 1000", "SMALLER 1000", "LARGER 100000",
    "BEFORE 3-Jun-2026", "ON 3-Jun-2026", "SINCE 3-Jun-2026", "SENTBEFORE 3-Jun-2026", "SENTON 3-Jun-2026",
    "SENTSINCE 3-Jun-2026", "NOT SEEN", "OR SEEN FLAGGED", "OR (SEEN ANSWERED) (FLAGGED)", "NOT (OR SEEN DRAFT)",
    "1:3", "2,4:*", "*", f"UID {first}:{first + 1}", f"UID {first + 5}:*", "UID 999999", "SEEN SINCE 3-Jun-2026",
    "FROM ann SUBJECT walk NOT 2", "SUBJECT walk (FROM ann1)", "CHARSET UTF-8 SUBJECT walk",
]:
    step("search " + keys, session.search(None, *keys.split(" ")))
session.literal = "Größe".encode()
step("search with a literal", session.search("UTF-8", "BODY"))
step("store", session.uid("STORE", str(first), "+FLAGS", "(\\Seen $Later)"))
step("store silent", session.uid("STORE", str(first + 1), "-FLAGS.SILENT", "(\\Seen)"))
step("store all", session.store("3", "FLAGS", "(\\Deleted)"))
step("after stores", session.uid("FETCH", all_of_them, "(FLAGS)"))
step("fetch without peek", session.uid("FETCH", f"{first + 3}", "(BODY[TEXT])"))
step("fetch RFC822", session.uid("FETCH", f"{first + 5}", "(RFC822.SIZE RFC822)"))
step("after reading", session.uid("FETCH", all_of_them, "(FLAGS)"))
step("other's select", other.select(name, readonly=True))
step("a read-only store", other.uid("STORE", str(first), "+FLAGS", "(\\Flagged)"), data=False)
step("a read-only fetch", other.uid("FETCH", str(first), "(BODY[TEXT])"))
step("flags after a read-only fetch", other.uid("FETCH", str(first), "(FLAGS)"))
answer = session.uid("COPY", f"{first},{first + 1}", "Archive")
step("copy", (answer[0], None))
answer = session.uid("MOVE", f"{first + 4}", "Archive")
step("move", (answer[0], None))
untagged(session, "EXPUNGE")
step("expunge", session.expunge())
step("after expunge", session.uid("FETCH", "1:*", "(UID FLAGS)"))
step("other's noop", other.noop(), data=False)
untagged(other, "EXPUNGE")
step("other's flags", other.uid("FETCH", "1:*", "(UID FLAGS)"))
step("store on what is gone", session.uid("STORE", str(first + 2), "+FLAGS", "(\\Seen)"))
step("copy of what is gone", session.uid("COPY", "999999", "Archive"), data=False)
step("status of a selected mailbox", (session.status(name, "(MESSAGES)")[0], None))
step("copy to nowhere", session.uid("COPY", str(first), "\"No such mailbox\""), data=False)
step("check", session.check(), data=False)
session.uid("STORE", "1:*", "+FLAGS", "(\\Deleted)")
step("close", session.close(), data=False)
step("left", counts(session, "(MESSAGES)"))
session.append(name, "(\\Deleted)", None, messages[0])
session.append(name, "(\\Deleted)", None, messages[5])
session.select(name)
uids = session.uid("SEARCH", "ALL")[1][0].split()
step("expunge by uid", (session.uid("EXPUNGE", uids[0].decode())[0], None))
step("one is left", session.fetch("1:*", "(FLAGS RFC822.HEADER)"))
step("copy by number", (session.copy("1", "Archive")[0], None))
step("move by number", (session.xatom("MOVE", "1", "Archive")[0], None))
step("subscribe", session.subscribe(name), data=False)
step("subscribed", (session.lsub("\"\"", name)[0], None))
step("unselect", session.unselect(), data=False)
step("nothing is left", counts(session, "(MESSAGES)"))
step("logout", (session.logout()[0], None))
other.logout()
print(json.dumps(seen))
