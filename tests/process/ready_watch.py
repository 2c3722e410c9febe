"""Sends a signal to a process and looks at /ready all the time until all is well again.

usage: ready_watch.py PORT SIGNAL PID [continue]   (SIGNAL as in `kill`: KILL, STOP)

With `continue` the process gets SIGCONT as soon as /ready has told.

Prints one JSON object: `told_ms` (from the signal to the first answer that is not "ok"), `told` (that
answer: code and status), `codes` (all that were seen), `back_ms` (until "ok" again; null: not within the
time), `stood_ms` (for how long of `told_ms` this machine stood still, as far as a thread that only sleeps saw
it), `reason` (of the first answer with 503) and `roles` (of the first answer that is not "ok").
"""
import http.client
import json
import os
import signal
import sys
import threading
import time

PATIENCE = 240  # seconds: only a broken service is waited for so long
NAP, LATE = 0.01, 0.05  # seconds of a nap, and by how much more it may take on a machine that works


class Stillness(threading.Thread):
    """Adds up by how much naps were longer than asked for."""

    def __init__(self):
        super().__init__(daemon=True)
        self.seconds = 0.0

    def run(self):
        while True:
            began = time.monotonic()
            time.sleep(NAP)
            late = time.monotonic() - began - NAP
            if late > LATE:
                self.seconds += late


def main(port, name, pid, goes_on):
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=PATIENCE)

    def ready():
        connection.request("GET", "/ready")
        reply = connection.getresponse()
        return reply.status, json.loads(reply.read())

    def until(wanted):
        """Looks until an answer is wanted; all answers on the way, with their times."""
        end = time.monotonic() + PATIENCE
        while time.monotonic() < end:
            code, body = ready()
            yield time.monotonic(), code, body
            if wanted(body["status"]):
                return
            time.sleep(0.002)
        yield None, 0, {"status": "never", "reason": "never", "roles": None}

    for _ in until(lambda status: status == "ok"):
        pass
    stillness = Stillness()
    stillness.start()
    os.kill(pid, getattr(signal, "SIG" + name))
    began = time.monotonic()
    answers = list(until(lambda status: status != "ok"))
    told_at, code, body = answers[-1]
    told = f"{code} {body['status']}"
    stood = stillness.seconds
    roles = body["roles"]
    if goes_on:
        os.kill(pid, signal.SIGCONT)
    answers += until(lambda status: status == "ok")
    back_at = answers[-1][0]
    refused = [body["reason"] for _, code, body in answers if code == 503]
    print(json.dumps({
        "told_ms": told_at and round((told_at - began) * 1e3),
        "told": told,
        "stood_ms": round(stood * 1e3),
        "codes": sorted({code for _, code, _ in answers}),
        "back_ms": back_at and round((back_at - began) * 1e3),
        "reason": refused[0] if refused else None,
        "roles": roles,
    }))


main(int(sys.argv[1]), sys.argv[2], int(sys.argv[3]), sys.argv[4:] == ["continue"])
