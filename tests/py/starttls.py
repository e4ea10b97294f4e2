"""STARTTLS on both faces, by hand.

usage: starttls.py IMAP-PORT SMTP-PORT CERTIFICATE USER KEY

Signing in before TLS is refused; what was sent behind STARTTLS in clear is
never carried out inside TLS (RFC 3207 section 6, RFC 9051 section 6.2.1).
Prints nothing; a broken promise is a failed assertion.
"""

import base64
import socket
import ssl
import sys

imap_port, smtp_port, certificate, user, key = sys.argv[1:]
context = ssl.create_default_context(cafile=certificate)
plain = base64.b64encode(f"\0{user}\0{key}".encode()).decode()


class Peer:
    def __init__(self, port):
        self.socket = socket.create_connection(("localhost", int(port)), timeout=20)
        self.file = self.socket.makefile("rb")

    def send(self, text):
        self.socket.sendall(text.encode())

    def line(self):
        return self.file.readline().decode()

    def until(self, *starts):
        lines = []
        while True:
            line = self.line()
            assert line, (starts, lines)
            lines.append(line)
            if line.startswith(starts):
                return lines

    def secure(self):
        self.socket = context.wrap_socket(self.socket, server_hostname="localhost")
        self.file = self.socket.makefile("rb")


imap = Peer(imap_port)
greeting = imap.line()
assert "STARTTLS" in greeting and "LOGINDISABLED" in greeting, greeting
assert "AUTH=PLAIN" not in greeting, greeting
imap.send(f"a1 LOGIN {user} {key}\r\n")
assert imap.until("a1 ")[-1].startswith("a1 NO"), "LOGIN in clear"
imap.send(f"a2 AUTHENTICATE PLAIN {plain}\r\n")
assert imap.until("a2 ")[-1].startswith(("a2 NO", "a2 BAD")), "AUTHENTICATE in clear"
imap.send("a3 STARTTLS\r\na4 NOOP\r\n")
if imap.until("a3 ", "* BYE", "* BAD")[-1].startswith("a3 OK"):
    try:
        imap.secure()
        imap.send("a5 CAPABILITY\r\n")
        answered = imap.until("a5 ")
        assert not any(line.startswith("a4") for line in answered), answered
    except (ssl.SSLError, ConnectionError):
        pass  # Ending the connection is as good as forgetting, or refusing.

smtp = Peer(smtp_port)
smtp.until("220 ")
smtp.send("EHLO client.example.net\r\n")
offered = smtp.until("250 ")
assert any("STARTTLS" in line for line in offered), offered
assert not any("AUTH" in line for line in offered), offered
smtp.send(f"AUTH PLAIN {plain}\r\n")
assert smtp.line().startswith("5"), "AUTH in clear"
smtp.send("MAIL FROM:<demo@example.org>\r\n")
assert smtp.line().startswith("530"), "MAIL in clear"
smtp.send("STARTTLS\r\nNOOP\r\n")
answer = smtp.line()
if answer.startswith("220"):
    try:
        smtp.secure()
        smtp.send("EHLO client.example.net\r\n")
        # A NOOP that was carried out would be answered first, with one line.
        assert smtp.line().startswith("250-"), "the injected NOOP was answered"
    except (ssl.SSLError, ConnectionError):
        pass
else:
    assert answer == "" or answer.startswith(("5", "421")), answer

# And without anything behind STARTTLS it works.
imap = Peer(imap_port)
imap.line()
imap.send("b1 STARTTLS\r\n")
imap.until("b1 OK")
imap.secure()
imap.send("b0 CAPABILITY\r\n")
offered = imap.until("b0 ")[0]
assert "AUTH=PLAIN" in offered and "STARTTLS" not in offered and "LOGINDISABLED" not in offered, offered
imap.send(f"b2 LOGIN {user} {key}\r\n")
assert imap.until("b2 ")[-1].startswith("b2 OK"), "LOGIN inside TLS"
imap.send("b3 STARTTLS\r\n")
assert imap.until("b3 ")[-1].startswith("b3 BAD"), "STARTTLS twice"
smtp = Peer(smtp_port)
smtp.until("220 ")
smtp.send("EHLO client.example.net\r\n")
smtp.until("250 ")
smtp.send("STARTTLS\r\n")
smtp.until("220 ")
smtp.secure()
smtp.send("MAIL FROM:<demo@example.org>\r\n")
# RFC 3207 section 4.2: what was known before TLS is forgotten, EHLO too.
assert smtp.line().startswith(("503", "530")), "EHLO is forgotten"
smtp.send("EHLO client.example.net\r\n")
offered = smtp.until("250 ")
assert any("AUTH" in line for line in offered), offered
assert not any("STARTTLS" in line for line in offered), offered
smtp.send(f"AUTH PLAIN {plain}\r\n")
assert smtp.line().startswith("235"), "AUTH inside TLS"
