#!/usr/bin/env python3
"""Open-loop streams at a service whose pools change their sizes, compared with the answers of the same service at rest.

usage: scaling.py API_PORT ADMIN_PORT [--events N] [--seed S] [--load PERCENT] [--tokens N] [--attention SIZES]
                  [--cells NAME=SIZES/... [--cuts]] [--model SIZES] [--prefill SIZES]

First a closed loop of eight streams without a change: it gives the reference answers, the gaps between tokens at rest
and the rate that the service reaches. Then requests arrive at random times at so many percent of that rate while
events are drawn: another size of a pool, with --cuts often another partition of a cell, or a worker that is drained. The pause of a stream is its gap in which the
next epoch took over. Exits with 1 where an answer failed, differs, or
was refused, where a change ended in any way but done, or where slots stay in use.
"""
import argparse
import datetime
import http.client
import json
import random
import sys
import threading
import time

PROMPTS = 16


class Service:
    def __init__(self, port, admin, tokens):
        self.port, self.admin, self.tokens = port, admin, tokens
        self.model = self.get(port, "/v1/models")["data"][0]["id"]

    @staticmethod
    def call(port, method, path, body=None, timeout=60):
        link = http.client.HTTPConnection("127.0.0.1", port, timeout=timeout)
        try:
            link.request(method, path, json.dumps(body) if body is not None else None,
                         {"content-type": "application/json"})
            reply = link.getresponse()
            return reply.status, reply.read().decode()
        finally:
            link.close()

    def get(self, port, path):
        return json.loads(self.call(port, "GET", path)[1])

    def stream(self, number):
        """The text of an answer, or what went wrong, and the times at which its pieces came."""
        body = {"model": self.model, "prompt": f"Story number {number}: once upon a time there was a",
                "max_tokens": self.tokens, "seed": number, "temperature": 0.8, "stream": True, "ignore_eos": True}
        link = http.client.HTTPConnection("127.0.0.1", self.port, timeout=600)
        text, times = "", []
        try:
            link.request("POST", "/v1/completions", json.dumps(body), {"content-type": "application/json"})
            reply = link.getresponse()
            if reply.status != 200:
                return f"REFUSED {reply.status} {reply.read().decode()}", times
            for line in reply:
                if not line.startswith(b"data: {"):
                    continue
                piece = json.loads(line[6:])
                if "error" in piece:
                    return f"FAILED {piece['error']}", times
                if piece["choices"]:
                    text += piece["choices"][0]["text"]
                    times.append(time.monotonic())
            return text, times
        except OSError as e:
            return f"FAILED {e}", times
        finally:
            link.close()

    def pools(self):
        return {x["pool"]: x for x in self.get(self.admin, "/admin/pools")["pools"]}

    def workers(self):
        return [x for x in self.get(self.admin, "/admin/status")["workers"] if x["state"] == "live"]

    def settled(self, pool, seconds=90):
        """The newest change of a pool or cell, once all changes of the pool have ended."""
        end = time.monotonic() + seconds
        while True:
            all_of_them = self.pools()
            busy = [x for name, x in all_of_them.items()
                    if x["state"] in ("under way", "short") and name.split("/")[0] == pool.split("/")[0]]
            if not busy or time.monotonic() > end:
                return busy[0] if busy else all_of_them[pool]
            time.sleep(0.02)


def percentiles(gaps):
    gaps = sorted(gaps)
    if not gaps:
        return {}
    at = lambda p: round(1e3 * gaps[min(int(p * len(gaps)), len(gaps) - 1)], 1)
    return {"p50_ms": at(0.5), "p99_ms": at(0.99), "max_ms": at(1), "gaps": len(gaps)}


def gaps_of(times):
    return [(a, b - a) for a, b in zip(times, times[1:])]


class Load:
    """Requests that arrive by themselves."""

    def __init__(self, service, reference, rate, chance):
        self.service, self.reference, self.rate, self.chance = service, reference, rate, chance
        self.stopping, self.lock, self.gaps = threading.Event(), threading.Lock(), []
        self.answers, self.wrong, self.open = 0, [], []
        self.thread = threading.Thread(target=self.run)
        self.thread.start()

    def run(self):
        while not self.stopping.wait(self.chance.expovariate(self.rate)):
            x = threading.Thread(target=self.one, args=(self.chance.randrange(PROMPTS),))
            self.open.append(x)
            x.start()

    def one(self, number):
        text, times = self.service.stream(number)
        with self.lock:
            self.answers += 1
            self.gaps += gaps_of(times)
            if text != self.reference[number]:
                self.wrong.append(f"prompt {number}: {text[-160:]!r}")

    def end(self):
        self.stopping.set()
        self.thread.join()
        for x in self.open:
            x.join()


def at_rest(service):
    """Reference answers, gaps, and requests per second of eight streams at a time."""
    reference, gaps, todo, lock = {}, [], list(range(PROMPTS)), threading.Lock()

    def work():
        while True:
            with lock:
                if not todo:
                    return
                number = todo.pop()
            reference[number], times = service.stream(number)
            gaps.extend(gaps_of(times))

    began = time.monotonic()
    threads = [threading.Thread(target=work) for _ in range(8)]
    for x in threads:
        x.start()
    for x in threads:
        x.join()
    return reference, [x for _, x in gaps], PROMPTS / (time.monotonic() - began)


class Events:
    """Draws changes, waits for each, and notes what became of it and when it was under way."""

    def __init__(self, service, sizes, chance, cuts):
        self.service, self.sizes, self.chance, self.cuts = service, sizes, chance, cuts
        self.by_kind, self.bad, self.windows, self.seconds = {}, [], [], []

    def draw(self):
        roles = {x.split("/")[0] for x in self.sizes}
        workers = [x for x in self.service.workers() if x["role"] in roles] if self.chance.random() < 0.2 else []
        if workers:
            who = self.chance.choice(sorted(workers, key=lambda x: x["seat"]))
            return who["role"], "drain", "/admin/drain-worker", {"worker": who["seat"]}
        pool = self.chance.choice(sorted(self.sizes))
        pools = self.service.pools()
        now = pools[pool]["members"]
        alone = "/" in pool and pools["attention"]["members"] == now  # no other cell has members
        size = self.chance.choice([x for x in self.sizes[pool] if x != now and (x > 0 or not alone)] or [now])
        kind = f"{pool} {'out' if size > now else 'in'}"
        change = {"pool": pool, "members": size}
        if self.cuts and "/" in pool:
            cut = self.chance.choice(("heads", "requests"))
            if cut != pools[pool]["partition"]:
                change["partition"] = cut
                kind += f", to {cut}"
        return pool, kind, "/admin/scale", change

    def one(self):
        pool, kind, path, body = self.draw()
        began = time.monotonic()
        status, text = self.service.call(self.service.admin, "POST", path, body)
        if status == 409 and kind == "drain":  # nobody is there who could take its part over
            self.by_kind["drain refused"] = self.by_kind.get("drain refused", 0) + 1
            return
        change = self.service.settled(pool)
        took = time.monotonic() - began
        self.windows.append((began, began + took))
        self.by_kind[kind] = self.by_kind.get(kind, 0) + 1
        self.seconds.append(took)
        if status not in (200, 202) or change["state"] not in ("done", "none"):
            self.bad.append(f"{kind} {body}: {status} {text.strip()[:200]} {change}")


def slots_in_use(service):
    for _ in range(500):
        used = sum(x["slots"]["used"] for x in service.get(service.admin, "/admin/status")["pools"])
        if used == 0:
            return 0
        time.sleep(0.02)
    return used


class Takeovers:
    """The moments at which an epoch took over, in time.monotonic(), gathered while the service runs."""

    def __init__(self, service):
        self.service, self.newest = service, 0
        self.offset = time.time() - time.monotonic()
        self.moments = []

    def gather(self):
        page = self.service.get(self.service.admin, f"/admin/events?after={self.newest}")
        for x in page["events"]:
            self.newest = x["number"]
            if x["kind"] == "epoch_taken_over":
                at = datetime.datetime.fromisoformat(x["time"].replace("Z", "+00:00"))
                self.moments.append(at.timestamp() - self.offset)

    def pauses(self, gaps):
        """The gap of each stream in which an epoch took over; the moments are told in whole milliseconds."""
        return [x for began, x in gaps if any(began - 0.001 < t < began + x for t in self.moments)]


def during(gaps, windows, are=True):
    """Those gaps that overlap a change, or those that do not."""
    return [x for began, x in gaps if any(began < b and began + x > a for a, b in windows) == are]


def run(options):
    sizes = {name: [int(x) for x in getattr(options, name).split(",")]
             for name in ("attention", "model", "prefill") if getattr(options, name)}
    if options.cells:
        del sizes["attention"]
        for cell in options.cells.split("/"):
            name, members = cell.split("=")
            sizes[f"attention/{name}"] = [int(x) for x in members.split(",")]
    service = Service(options.api, options.admin, options.tokens)
    reference, quiet, rate = at_rest(service)
    failed = [x for x in reference.values() if x.startswith(("FAILED", "REFUSED"))]
    if failed:
        return {"reference": failed[0]}, False
    chance = random.Random(options.seed)
    load = Load(service, reference, rate * options.load / 100, random.Random(options.seed + 1))
    events = Events(service, sizes, chance, options.cuts)
    takeovers = Takeovers(service)
    takeovers.gather()
    takeovers.moments.clear()
    for _ in range(options.events):
        time.sleep(chance.uniform(0.1, 0.7))
        events.one()
        takeovers.gather()
    load.end()
    result = {"seed": options.seed, "events": options.events, "kinds": events.by_kind,
              "seconds_p50": round(sorted(events.seconds)[len(events.seconds) // 2], 3) if events.seconds else None,
              "seconds_max": round(max(events.seconds), 3) if events.seconds else None,
              "changes_not_done": events.bad, "answers": load.answers, "wrong": load.wrong,
              "slots_in_use": slots_in_use(service), "requests_per_second": round(rate * options.load / 100, 2),
              "gaps_at_rest": percentiles(quiet), "gaps": percentiles([x for _, x in load.gaps]),
              "gaps_during_changes": percentiles(during(load.gaps, events.windows)),
              "gaps_between_changes": percentiles(during(load.gaps, events.windows, False)),
              "pauses_of_takeovers": percentiles(takeovers.pauses(load.gaps))}
    return result, not (events.bad or load.wrong or result["slots_in_use"])


def main():
    words = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    words.add_argument("api", type=int)
    words.add_argument("admin", type=int)
    words.add_argument("--events", type=int, default=10)
    words.add_argument("--seed", type=int, default=1)
    words.add_argument("--load", type=int, default=80, help="percent of the rate of eight streams at a time")
    words.add_argument("--tokens", type=int, default=100)
    words.add_argument("--attention", default="1,3")
    words.add_argument("--cells", default="")
    words.add_argument("--cuts", action="store_true", help="cells are cut by heads or by requests by turns")
    words.add_argument("--model", default="")
    words.add_argument("--prefill", default="")
    result, good = run(words.parse_args())
    print(json.dumps(result))
    sys.exit(0 if good else 1)


if __name__ == "__main__":
    main()
