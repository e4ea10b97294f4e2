"""Looks at every message of a mailbox with Python's imaplib, without changing
anything, and prints as JSON what doesn't depend on UIDs, order or stamps.

usage: look.py PORT CERTIFICATE USER PASSWORD MAILBOX

Messages are named by their Message-ID. For each message also the size that
was told and the length of the octets that came.
"""

import imaplib
import json
import re
import ssl
import sys

port, certificate, user, password, mailbox = sys.argv[1:]
context = ssl.create_default_context(cafile=certificate)
session = imaplib.IMAP4_SSL("localhost", int(port), ssl_context=context, timeout=30)
session.login(user, password)


def ok(answer):
    status, values = answer
    assert status == "OK", (status, values)
    return values


def text(octets):
    return octets.decode("utf-8", "surrogateescape").encode("ascii", "backslashreplace").decode()


def item(uid, name):
    """One item of one message, whole, as text."""
    values = [v for v in ok(session.uid("FETCH", uid, f"({name})")) if v is not None]
    joined = b" ".join(b"\r\n".join(v) if isinstance(v, tuple) else v for v in values)
    plain = re.sub(r"^\d+ \(UID \d+ ", "", text(joined))
    return re.sub(r"FIELDS \([^)]*\)", lambda m: m.group(0).upper(), plain, count=1)


ok(session.select(f'"{mailbox}"', readonly=True))
(found,) = ok(session.uid("SEARCH", "ALL"))
messages, names = {}, {}
for uid in found.decode().split():
    head = ok(session.uid("FETCH", uid, "(RFC822.SIZE BODY.PEEK[])"))
    size = int(re.search(rb"RFC822\.SIZE (\d+)", head[0][0]).group(1))
    octets = head[0][1]
    name = re.search(rb"(?im)^Message-ID: *(<[^>]*>)", octets).group(1).decode()
    names[uid] = name
    header = ok(session.uid("FETCH", uid, "(BODY.PEEK[HEADER])"))[0][1]
    body = item(uid, "BODY.PEEK[TEXT]")
    messages[name] = {
        "size": [size, len(octets)],
        "header begins the message": octets.startswith(header),
        "items": {
            n: item(uid, n)
            for n in [
                "INTERNALDATE", "ENVELOPE", "BODY", "BODYSTRUCTURE", "BODY.PEEK[TEXT]", "BODY.PEEK[1]", "BODY.PEEK[1.MIME]",
                "BODY.PEEK[2]", "BODY.PEEK[2.MIME]", "BODY.PEEK[1.HEADER]", "BODY.PEEK[1.TEXT]", "BODY.PEEK[9]",
                "BODY.PEEK[TEXT]<2.7>", "BODY.PEEK[HEADER.FIELDS (From To Subject Date References)]",
            ]
        },
    }

searches = {}
for keys in [
    "ALL", "UNSEEN", "SUBJECT parts", "SUBJECT Gr", "FROM ann", "FROM ann@example.com", "TO alice", "CC nobody",
    "BODY inside", "BODY marzipan", "TEXT inner@example.net", "TEXT 0123456789", "BODY 0123456789", "HEADER X-Long \"\"",
    "HEADER Message-ID tests.example.test", "HEADER List-Unsubscribe \"\"", "HEADER Received LMTP", "TEXT push",
    "BODY X-Tollgate-Lane", "HEADER X-TUID AbCd", "SINCE 1-Jan-2020", "BEFORE 1-Jan-2020", "SENTSINCE 1-Jan-2020",
    "NOT SUBJECT plain", "OR SUBJECT plain SUBJECT dots", "NOT (OR SUBJECT plain SUBJECT dots)",
    "SUBJECT plain FROM ann", "NOT BODY hello", "LARGER 100000", "SMALLER 100000", "KEYWORD nothing",
]:
    (hits,) = ok(session.uid("SEARCH", *keys.split(" ")))
    searches[keys] = sorted(names[u] for u in hits.decode().split())
session.literal = "schöne grüße".encode()
(hits,) = ok(session.uid("SEARCH", "CHARSET", "UTF-8", "BODY"))
searches["BODY Schöne Grüße"] = sorted(names[u] for u in hits.decode().split())
session.logout()
print(json.dumps({"messages": messages, "searches": searches}))
