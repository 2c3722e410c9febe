#!/usr/bin/env python3
"""Tokens per second of a service while nobody, one or several consoles look at it, in turns; and its processor time.

usage: consoles.py API_PORT ADMIN_PORT PID [--consoles N,...] [--rounds N] [--seconds S] [--streams N]

A console is what the page asks for: /admin/console once a second, new events, and a moment of the pipeline every two
seconds. Its answers are read and thrown away. In each round every number of consoles has so many seconds; streams
follow each other without a pause. Prints JSON: of each number the tokens per second of all rounds, and the median of
its ratio to none in the same round; likewise for the processor time of the service's process for each token, which the
consoles themselves have no part in.
"""
import argparse
import http.client
import json
import os
import statistics
import threading
import time


def processor_seconds(pid):
    """What the process has used so far, all of its threads."""
    fields = open(f"/proc/{pid}/stat").read().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


class Streams:
    """Completions that follow each other, and the tokens they have got."""

    def __init__(self, port, count):
        self.port, self.tokens, self.failures = port, 0, []
        self.lock, self.stopping = threading.Lock(), threading.Event()
        link = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
        link.request("GET", "/v1/models")
        self.model = json.loads(link.getresponse().read())["data"][0]["id"]
        self.threads = [threading.Thread(target=self.run, args=(i,)) for i in range(count)]
        for x in self.threads:
            x.start()

    def run(self, number):
        body = json.dumps({"model": self.model, "prompt": f"Story {number}: once", "max_tokens": 400, "stream": True,
                           "ignore_eos": True, "seed": number, "temperature": 1})
        while not self.stopping.is_set():
            link = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
            try:
                link.request("POST", "/v1/completions", body, {"content-type": "application/json"})
                reply = link.getresponse()
                if reply.status != 200:
                    self.failures.append(reply.status)
                    return
                for line in reply:
                    if line.startswith(b"data: {"):
                        with self.lock:
                            self.tokens += 1
                    if self.stopping.is_set():
                        break
            finally:
                link.close()

    def end(self):
        self.stopping.set()
        for x in self.threads:
            x.join()


class Consoles:
    def __init__(self, port, count):
        self.port, self.stopping, self.moments, self.refused = port, threading.Event(), 0, 0
        self.threads = [threading.Thread(target=self.run, args=(i / max(1, count),)) for i in range(count)]
        for x in self.threads:
            x.start()

    def ask(self, link, method, path):
        link.request(method, path, None, {"content-type": "application/json"} if method == "POST" else {})
        reply = link.getresponse()
        reply.read()
        return reply.status

    def run(self, late):
        link = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        next_moment = 0
        self.stopping.wait(late)
        while not self.stopping.is_set():
            began = time.monotonic()
            self.ask(link, "GET", "/admin/console")
            if began >= next_moment:
                got = self.ask(link, "POST", "/admin/trace?for=0.05&newest=2")
                self.moments, self.refused = self.moments + (got == 200), self.refused + (got != 200)
                next_moment = time.monotonic() + 2
            self.stopping.wait(max(0, began + 1 - time.monotonic()))
        link.close()

    def end(self):
        self.stopping.set()
        for x in self.threads:
            x.join()


def main():
    words = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    words.add_argument("api", type=int)
    words.add_argument("admin", type=int)
    words.add_argument("pid", type=int)
    words.add_argument("--consoles", default="0,1,20")
    words.add_argument("--rounds", type=int, default=6)
    words.add_argument("--seconds", type=float, default=8)
    words.add_argument("--streams", type=int, default=8)
    options = words.parse_args()
    counts = [int(x) for x in options.consoles.split(",")]
    streams = Streams(options.api, options.streams)
    time.sleep(3)
    rates, costs, moments, refused = {x: [] for x in counts}, {x: [] for x in counts}, 0, 0
    for number in range(options.rounds):
        for count in counts if number % 2 == 0 else reversed(counts):
            looking = Consoles(options.admin, count)
            time.sleep(0.5)
            before, began, used = streams.tokens, time.monotonic(), processor_seconds(options.pid)
            time.sleep(options.seconds)
            tokens = streams.tokens - before
            rates[count].append(tokens / (time.monotonic() - began))
            costs[count].append((processor_seconds(options.pid) - used) / max(1, tokens) * 1e3)
            looking.end()
            moments, refused = moments + looking.moments, refused + looking.refused
    streams.end()
    def of_none(measured):
        return {str(x): round(statistics.median(a / b for a, b in zip(measured[x], measured[counts[0]])), 3)
                for x in counts[1:]}

    print(json.dumps({
        "tokens_per_second": {str(x): [round(y, 1) for y in rates[x]] for x in counts}, "of_none": of_none(rates),
        "processor_ms_per_token": {str(x): [round(y, 3) for y in costs[x]] for x in counts},
        "processor_of_none": of_none(costs),
        "moments": moments, "moments_refused": refused, "failures": streams.failures}))


if __name__ == "__main__":
    main()
