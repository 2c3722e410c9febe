#!/usr/bin/env python3
"""Does to every TCP port of some processes what strangers do, and says what it cost them.

usage: strangers.py PID...   prints one JSON object: ports, descriptors and memory before and after
"""
import json
import os
import random
import socket
import sys
import time

pids = [int(x) for x in sys.argv[1:]]


def listening(pid):
    """Ports on which a process listens."""
    inodes = set()
    for fd in os.listdir(f"/proc/{pid}/fd"):
        try:
            target = os.readlink(f"/proc/{pid}/fd/{fd}")
        except OSError:
            continue
        if target.startswith("socket:["):
            inodes.add(target[8:-1])
    found = set()
    for line in open(f"/proc/{pid}/net/tcp").read().splitlines()[1:]:
        words = line.split()
        if words[3] == "0A" and words[9] in inodes:
            found.add(int(words[1].split(":")[1], 16))
    return found


def cost():
    """Open descriptors and kB of their own memory, of all of them together."""
    fds = sum(len(os.listdir(f"/proc/{pid}/fd")) for pid in pids)
    kb = sum(int(line.split()[1]) for pid in pids
             for line in open(f"/proc/{pid}/status") if line.startswith("RssAnon:"))
    return {"fds": fds, "kb": kb}


def at_rest():
    """What it costs once the pages of caches that are made ahead of sequences are there, a minute at most."""
    now, end = cost(), time.monotonic() + 60
    while time.monotonic() < end:
        time.sleep(1.5)
        last, now = now, cost()
        if now["kb"] - last["kb"] < 1024:
            break
    return now


def reach(port, receive_buffer=None):
    s = socket.socket()
    if receive_buffer:
        s.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer)
    s.settimeout(5)
    s.connect(("127.0.0.1", port))
    s.settimeout(0.05)
    return s


def say(s, data):
    try:
        s.sendall(data)
    except OSError:
        pass


seed = random.randrange(1 << 32)
rng = random.Random(seed)
REQUEST = b"GET /v1/models HTTP/1.1\r\nhost: x\r\n\r\n"
WORDS = [
    b"", REQUEST[:20], bytes(4096), b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + bytes(80), b"SSH-2.0-x\r\n",
    b"TGML" + bytes(8),  # the first word of a control connection, and not the rest
    b"TGML\x01\x00\x00\x00" + bytes(32) + bytes(32),  # all of it, with a proof of nothing
    b"PDML\x02\x00\x02\x00" + bytes(80),  # the first words of a link
    b"POST /v1/completions HTTP/1.1\r\nhost: x\r\ncontent-length: 99999999999999999999\r\n\r\n",
]
ports = sorted(set().union(*(listening(pid) for pid in pids)))
for port in ports:  # what is made once for whoever comes first
    reach(port).close()
time.sleep(1)
before = at_rest()
held = []
for port in ports:
    for i in range(200):  # a scan
        reach(port).close()
    for i in range(100):  # garbage and half conversations, some of which stay
        s = reach(port)
        say(s, WORDS[i % len(WORDS)] if i % 3 else rng.randbytes(rng.randrange(1, 3000)))
        held.append(s)
    for _ in range(20):  # asks and asks, and never reads
        s = reach(port, 2048)
        say(s, REQUEST * 2000)
        held.append(s)
    for i in range(20):  # half closed, or reset
        s = reach(port)
        say(s, WORDS[i % len(WORDS)])
        try:
            if i % 2:
                s.shutdown(socket.SHUT_WR)
            else:
                s.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
        except OSError:
            pass  # the other side was quicker
        s.close()
for at in range(20):  # slow bytes
    for s in held[::5]:
        say(s, bytes([65 + at]))
    time.sleep(0.1)
during = cost()
for s in held:
    s.close()
after = cost()
for _ in range(300):
    if after["fds"] <= before["fds"] + 8:
        break
    time.sleep(0.2)
    after = cost()
print(json.dumps({"seed": seed, "ports": ports, "before": before, "during": during, "after": after}))
