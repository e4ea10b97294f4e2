"""Reads one account through the gateway with Python's imaplib, over TLS.

usage: lanes.py PORT CERTIFICATE USER KEY MESSAGE-ID

Finds the message in its lane, fetches it by UID, flags it, moves it to
Archive, appends a copy to Sent, and waits in IDLE for nothing to happen.
Prints one JSON object with what it saw.
"""

import imaplib
import json
import ssl
import sys
import time

port, certificate, user, key, message_id = sys.argv[1:]


def ok(answer):
    status, data = answer
    assert status == "OK", (status, data)
    return data


context = ssl.create_default_context(cafile=certificate)
session = imaplib.IMAP4_SSL("localhost", int(port), ssl_context=context, timeout=30)
ok(session.login(user, key))
names = []
for line in ok(session.list()):
    attributes, _, rest = line.decode().partition(") ")
    if "\\noselect" not in attributes.lower():
        names.append(rest.split(" ", 1)[1].strip('"'))

lanes = [n for n in names if n == "INBOX" or n.startswith("Lanes/")]
found = {}
deadline = time.monotonic() + 30
while not found and time.monotonic() < deadline:
    for name in lanes:
        ok(session.select(f'"{name}"', readonly=True))
        (uids,) = ok(session.uid("SEARCH", "HEADER", "Message-ID", f'"{message_id}"'))
        if uids and name != "Lanes/All":
            found[name] = uids.decode()
    time.sleep(0.1)
(name, uid), = found.items()

ok(session.select(f'"{name}"'))
data = ok(session.uid("FETCH", uid, "(UID RFC822.SIZE FLAGS BODY.PEEK[])"))
head, octets = data[0]
size = int(head.decode().split("RFC822.SIZE ")[1].split()[0].rstrip(")"))
stamps = [l for l in octets.decode().split("\r\n") if l.startswith("X-Tollgate-")]

ok(session.uid("STORE", uid, "+FLAGS", "(\\Seen \\Flagged)"))
flags = ok(session.uid("FETCH", uid, "(FLAGS)"))[0].decode()

session.send(b"x1 IDLE\r\n")
assert session.readline().startswith(b"+"), "no continuation for IDLE"
session.send(b"DONE\r\n")
while not (line := session.readline()).startswith(b"x1 "):
    pass
assert line.startswith(b"x1 OK"), line

ok(session.append("Sent", "(\\Seen)", imaplib.Time2Internaldate(time.time()), octets))
ok(session.uid("MOVE", uid, "Archive"))
(left,) = ok(session.uid("SEARCH", "ALL"))
session.logout()

print(json.dumps({
    "names": names,
    "lane": name,
    "size": size,
    "octets": len(octets),
    "stamps": stamps,
    "flags": flags,
    "left": left.decode().split(),
}))
