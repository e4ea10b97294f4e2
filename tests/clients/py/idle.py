"""Waits in IDLE with aioimaplib and prints as JSON, a line each, what is pushed.

usage: idle.py PORT CERTIFICATE USER PASSWORD MAILBOX MESSAGE-ID...

For every Message-ID it waits until the mailbox tells of one message more,
fetches the newest and compares. Ready lines say `idle`.
"""

import asyncio
import json
import ssl
import sys
import time

import aioimaplib

port, certificate, user, password, mailbox, *ids = sys.argv[1:]


def say(**what):
    print(json.dumps(what), flush=True)


async def main():
    context = ssl.create_default_context(cafile=certificate)
    client = aioimaplib.IMAP4_SSL("localhost", int(port), ssl_context=context, timeout=30)
    await client.wait_hello_from_server()
    assert (await client.login(user, password)).result == "OK"
    assert (await client.select(f'"{mailbox}"')).result == "OK"
    assert client.has_capability("IDLE")
    for wanted in ids:
        idle = await client.idle_start(timeout=60)
        say(idle=wanted)
        pushed = []
        while not any(line.endswith(b"EXISTS") for line in pushed):
            pushed += [bytes(line) for line in await client.wait_server_push(timeout=60)]
        now = time.time()
        client.idle_done()
        await asyncio.wait_for(idle, 30)
        exists = next(line for line in pushed if line.endswith(b"EXISTS")).split()[0].decode()
        answer = await client.fetch(exists, "(UID RFC822.SIZE BODY.PEEK[])")
        assert answer.result == "OK", answer
        octets = next(bytes(line) for line in answer.lines if isinstance(line, bytearray))
        say(pushed=[line.decode() for line in pushed], at=now, found=f"<{wanted}>".encode() in octets, octets=len(octets))
    await client.logout()


asyncio.run(main())
