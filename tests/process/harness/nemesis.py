"""Does to a cluster what a schedule says, and writes what it did and what came of it."""
import itertools
import json
import random
import signal
import subprocess
import sys
import threading
import time
from datetime import datetime

from bit_flips import BitFlips
from cluster import CHANGE_SECONDS, DEAD_SECONDS, FIRST_PROXY_PORT, HTTP_PROXY_PORT, THROUGH_PROXY, until
from schedule import PROXY_KINDS
from service import sum_of

HEAL_SECONDS = 120  # for all workers to sit again
# What ends a TLS connection for certain, both ends being honest.
FATAL = ("flip", "truncate", "reset", "half_close")


class Proxy:
    """The chaos proxy, in a host of its own."""

    def __init__(self, cluster, script):
        self.log = cluster.work / "proxy.jsonl"
        hosts = cluster.hosts
        out = open(self.log, "ab")
        errors = open(cluster.work / "proxy.err", "ab")
        self.process = subprocess.Popen(["ip", "netns", "exec", "proxy", sys.executable, script],
                                        stdin=subprocess.PIPE, stdout=out, stderr=errors)
        at = hosts.control("proxy")
        through = [x for x in THROUGH_PROXY if x in cluster.workers]
        for i, name in enumerate(cluster.workers):
            if name in through:
                self.do("listen", name=name, listen=f"{at}:{FIRST_PROXY_PORT + i}", to=cluster.address["control"])
        self.do("listen", name="http", listen=f"{at}:{HTTP_PROXY_PORT}", to=cluster.address["api"])
        if not until(60, lambda: len(self.events("listening")) == len(through) + 1):
            raise RuntimeError("the proxy does not listen")

    def do(self, what, **words):
        self.process.stdin.write((json.dumps({"do": what, **words}) + "\n").encode())
        self.process.stdin.flush()

    def events(self, *names, after=0.0):
        lines = self.log.read_bytes().split(b"\n")[:-1]
        return [x for x in map(json.loads, lines) if x["event"] in names and x["t"] >= after]

    def stop(self):
        self.process.stdin.close()
        self.process.terminate()
        self.process.wait()


class Nemesis:
    def __init__(self, cluster, proxy):
        self.cluster, self.proxy = cluster, proxy
        self.file = open(cluster.work / "nemesis.jsonl", "a", buffering=1)
        self.later = []
        self.begin, self.numbers = time.time(), itertools.count()

    def tell(self, **what):
        self.file.write(json.dumps({"t": time.time(), **what}) + "\n")

    def play(self, schedule):
        for x in schedule:
            number = next(self.numbers)
            begin = time.time()
            before, sat = self.losses(), self.sitting()
            self.tell(event="begin", number=number, **x)
            print(f"{begin - self.begin:6.2f} s  {json.dumps(x)}", flush=True)
            done = self.perform(x)
            self.tell(event="performed", number=number, done=done)
            if x["gap"]:
                time.sleep(x["gap"])
            else:
                self.wait_for(number, x, begin, before, sat & set(x["targets"]) if done else set())
        self.heal()

    def losses(self):
        try:
            return sum_of(self.cluster.service.metrics(), "lamella_failovers_total")
        except OSError:
            return None

    def sitting(self):
        """Workers that have a seat; all, where nobody can tell."""
        try:
            return {x["name"] for x in self.cluster.service.status()["workers"]}
        except (OSError, ValueError):
            return set(self.cluster.workers)

    def perform(self, x):
        """Whether there was somebody to do it to."""
        kind, targets = x["kind"], x["targets"]
        cluster = self.cluster
        if kind == "kill":
            return all([cluster.signal(name, signal.SIGKILL, "kill") for name in targets])
        if kind == "scale":
            return cluster.scale(targets[0], x["members"])
        if kind == "cells":
            return cluster.reload_cells(x["cells"])
        if kind == "drain":
            return cluster.drain(targets[0])
        if kind == "slow_join":  # the new connection's first bytes take longer than heartbeats are apart
            self.proxy.do("injure", name=targets[0], kind="stall", way="down", seconds=0.6, next=True)
            return cluster.signal(targets[0], signal.SIGKILL, "kill")
        if kind in ("pause", "stop"):
            name, done = targets[0], cluster.signal(targets[0], signal.SIGSTOP)
            if kind == "pause":
                self.after(x["seconds"], cluster.signal, name, signal.SIGCONT)
            else:  # a service manager's watchdog ends who no longer answers
                self.after(DEAD_SECONDS + 1.5, cluster.signal, name, signal.SIGKILL, "kill")
            return done
        if kind.startswith(("cut", "mute")):
            how = cluster.hosts.cable if kind.startswith("cut") else cluster.hosts.mute
            planes = [kind.split("_")[1]] if "_" in kind else list(cluster.hosts.planes)
            bad, good = (False, True) if how == cluster.hosts.cable else (True, False)
            for plane in planes:
                how(targets[0], plane, bad)
                self.after(x["seconds"], how, targets[0], plane, good)
            return True
        if kind == "flip_data":
            self.flip_bits(targets[0], x)
            return True
        if kind == "http":  # each kind once, for the connections to come, one after the other
            chance = random.Random(x["seed"])
            for each in chance.sample(PROXY_KINDS, len(PROXY_KINDS)):
                self.proxy.do("injure", name="http", kind=each, way=chance.choice(("up", "down")), seconds=1.0,
                              seed=chance.randrange(1 << 30), next=True)
            return True
        if kind in PROXY_KINDS:
            self.proxy.do("injure", name=targets[0], kind=kind, way=x["way"], seconds=x["seconds"], seed=x["seed"],
                          stays=x.get("stays", False))
            return True
        role, seat = cluster.workers[targets[0]].role, cluster.workers[targets[0]].seat
        status, _ = cluster.service.injure(kind, f"{role}/{targets[0]}", int(x["seconds"] * 1000))
        return status == 200

    def flip_bits(self, name, x):
        """So many bits of what passes that host's data cable, one at a time, spread over the time."""
        chance = random.Random(x["seed"])
        flips = BitFlips(f"d-{self.cluster.hosts.number_of[name]}")
        for _ in range(x["count"]):
            self.after(chance.uniform(0, x["seconds"]), flips.flip, chance)
        self.after(x["seconds"] + 0.5, self.end_flips, flips, x)

    def end_flips(self, flips, x):
        self.tell(event="flipped", bits=flips.done(), of=x["count"])
        flips.stop()

    def after(self, seconds, what, *words):
        timer = threading.Timer(seconds, what, words)
        self.later.append(timer)
        timer.start()

    def wait_for(self, number, x, begin, before, hit):
        """Until what was done has had its effect on the workers that it hit, and all is well again."""
        time.sleep(max(0.0, begin + x["seconds"] - time.time()))  # what the service or the proxy does for a while
        for timer in self.later:
            timer.join()
        self.later.clear()
        until(CHANGE_SECONDS, lambda: not self.cluster.changing)
        kinds = ("kill", "stop", "slow_join") + FATAL
        lost = until(60, lambda: hit <= self.lost_since(begin)) if hit and x["kind"] in kinds else None
        whole = until(HEAL_SECONDS, self.cluster.is_whole)
        counted = None
        if lost is not None and before is not None:
            counted = (self.losses() or 0) - before
        closed = None
        if x["kind"] in FATAL:
            closed = {e["name"] for e in self.proxy.events("closed", after=begin)} >= set(x["targets"])
        self.tell(event="effect", number=number, kind=x["kind"], targets=x["targets"], lost=lost, closed=closed,
                  counted=counted, whole=whole, seconds=round(time.time() - begin, 2))

    def lost_since(self, begin):
        """Workers of which the gateway has told that it lost them or sent them away, after `begin`."""
        return {x["msg"].split(" worker=")[1].split()[0]
                for x in log_lines(self.cluster.work / "gateway.log", begin)
                if x["msg"].startswith(("worker lost seat=", "worker sent away seat="))}

    def heal(self):
        """Nobody is injured any more; whether all became well."""
        for timer in self.later:
            timer.join()
        self.later.clear()
        begin = time.time()
        whole = self.have_sizes_of_the_start() and until(HEAL_SECONDS, self.cluster.is_whole)
        self.tell(event="healed", whole=whole, seconds=round(time.time() - begin, 2))
        return whole

    def have_sizes_of_the_start(self):
        """Whether all pools have got them back, whatever became of the changes before."""
        cluster, sizes = self.cluster, self.cluster.layout.sizes

        def has(pool):
            if not cluster.changing and cluster.sizes.get(pool, 0) != sizes.get(pool, 0):
                if pool.startswith("attention/"):
                    cluster.reload_cells(cluster.layout.cells)
                else:
                    cluster.scale(pool, sizes[pool])
            return not cluster.changing and cluster.sizes.get(pool, 0) == sizes.get(pool, 0)
        return all([until(CHANGE_SECONDS, lambda: has(pool), 0.2) for pool in [*sizes, *cluster.sizes]])


def log_lines(file, after):
    """Lines of a process's log from then on (seconds since 1970), oldest first."""
    for line in open(file, errors="replace"):
        if line.startswith('{"ts":"'):
            x = json.loads(line)
            if datetime.fromisoformat(x["ts"].replace("Z", "+00:00")).timestamp() >= after - 0.002:
                yield x
