#!/usr/bin/env python3
"""Builds a service on hosts of its own, loads it, injures it, lets it heal and drain, and has the checker
look at everything that was written meanwhile. Called by ../harness_test.sh within its namespaces, in the
working folder, where the certificates are.

usage: run.py LAMELLA MODEL [--seed N] [--random SECONDS | --gray | --scaling | --schedule FILE]
    [--partition heads|requests|bare|cells] [--rate R] [--keep FOLDER]
"""
import argparse
import json
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import time

import checker
import schedule
import workload
from cluster import LAYOUTS, MODEL, THROUGH_PROXY, Cluster, until, wait_or_kill
from hosts import Hosts
from nemesis import Nemesis, Proxy
from sampler import Sampler

HERE = pathlib.Path(__file__).resolve().parent
LOOKS = 5  # at the drained service: its own canary request is there in one or the other
CANARY = "Zephyrine-9b1c4e"


def load(work, cluster, *words):
    return subprocess.Popen([sys.executable, HERE / "load.py", "--requests", "requests.json", "--key", "key",
                             "--address", cluster.address["api"], *map(str, words)], cwd=work)


def ended_well(process, what, seconds):
    wait_or_kill(process, seconds)
    if process.returncode != 0:
        raise RuntimeError(f"{what} ended with {process.returncode}")


def is_ready(cluster):
    try:
        return cluster.service.ready() == (200, "ok")
    except (OSError, ValueError):
        return False


def golden_run(work, cluster):
    """The answers of an undisturbed service of one process: what the others must be."""
    single = cluster.start_single()
    if not until(240, lambda: is_ready(cluster)):
        raise RuntimeError("the single process does not become ready")
    ended_well(load(work, cluster, "--once", "--count", len(json.load(open(work / "requests.json"))),
                    "--log", "golden.jsonl", "--prefix", "g"), "the golden load", 200)
    single.send_signal(signal.SIGTERM)
    ended_well(single, "the single process", 120)


def write_secrets(work, cluster):
    """What must not be in any log, status or metric."""
    pem = re.sub(r"-----[^-]*-----|\s", "", (work / "gateway.key").read_text())
    secrets = [CANARY, (work / "secret").read_text().strip(), *cluster.keys.values(), pem]
    (work / "secrets.json").write_text(json.dumps(secrets))


def injured_run(work, cluster, options, plan):
    layout = cluster.layout
    cluster.start()
    proxy = Proxy(cluster, HERE / "chaos_proxy.py")
    nemesis = Nemesis(cluster, proxy)
    sampler = Sampler(cluster, MODEL)
    try:
        if not until(240, cluster.is_whole):
            raise RuntimeError("the workers do not join")
        # Warm: every request once, so that what is allocated once is there before anything is compared.
        ended_well(load(work, cluster, "--once", "--count", len(json.load(open(work / "requests.json"))),
                        "--log", "client.jsonl", "--prefix", "w"), "the first load", 200)
        if layout.cells:  # links over which KV moves are there from the first change on
            nemesis.play([schedule.cells(layout.sizes[layout.attention], schedule.FAR[0])])
        settle(cluster)
        sampler.look("idle")
        client = load(work, cluster, "--rate", options.rate, "--seed", options.seed, "--log", "client.jsonl",
                      "--proxy", cluster.http_proxy)
        sampler.start()
        time.sleep(0.5)
        nemesis.play(plan)
        time.sleep(0.5)
        client.send_signal(signal.SIGTERM)
        ended_well(client, "the load", 250)
        sampler.stop()
        nemesis.heal()
        settle(cluster)
        for _ in range(LOOKS):
            sampler.look("drained")
            time.sleep(0.1)
    finally:
        cluster.stop()
        proxy.stop()


def settle(cluster):
    """Waits until nothing is asked of the service any more; the checker looks whether it is so. Slots of requests
    that ended while an epoch opened are for nobody (orphans) until holders have had time to speak, some seconds."""
    def idle():
        try:
            x = cluster.service.status()
            return x["gateway"]["requests"] == 0 and all(p["slots"]["used"] + p["slots"]["orphan"] == 0
                                                         for p in x["pools"])
        except (OSError, ValueError):
            return False
    until(60, idle, 0.1)


def print_log(file, last=120):
    """What the gateway told beside its requests, before the last line, which is the checker's."""
    if not file.exists():
        return
    lines = [x for x in open(file, errors="replace") if '"msg":"request_id=' not in x]
    print("".join(["the end of the gateway's log:\n"] + lines[-last:]), file=sys.stderr)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("lamella")
    parser.add_argument("model")
    parser.add_argument("--seed", type=int, default=7)
    parser.add_argument("--random", type=float, default=0, help="seconds of drawn injuries; else each kind in turn")
    parser.add_argument("--gray", action="store_true", help="minutes in which data links fail and control links do not")
    parser.add_argument("--scaling", action="store_true", help="pools that change their sizes, with and without kills")
    parser.add_argument("--partition", choices=sorted(LAYOUTS), default="heads",
                        help="heads: three shards and their parity; requests: four members without; bare: three "
                             "shards, neither parity nor a spare; cells: as heads, and another cell comes and goes")
    parser.add_argument("--schedule", help="JSON file of a run before")
    parser.add_argument("--rate", type=float, default=8, help="requests a second")
    parser.add_argument("--requests", type=int, default=40, help="different ones")
    parser.add_argument("--keep", help="folder that all files are copied to")
    options = parser.parse_args()
    work = pathlib.Path.cwd()
    print(f"seed {options.seed}", flush=True)
    layout = LAYOUTS[options.partition]
    attention = (layout.smaller, layout.sizes[layout.attention])
    cluster = Cluster(Hosts(work), work, options.lamella, options.model, layout)
    if options.schedule:
        plan = json.load(open(options.schedule))
    elif options.gray:
        plan = schedule.gray(options.seed, guarded=layout.parity)
    elif layout.cells:
        plan = schedule.cells_that_come_and_go(options.seed, attention)
    elif options.scaling:
        shards = layout.sizes["attention"] + layout.beside["attention"]
        plan = schedule.scaling(options.seed, attention, shards)
    elif options.random:
        plan = schedule.drawn(options.seed, options.random, layout.workers(), THROUGH_PROXY, attention=attention)
    else:
        plan = schedule.targeted(options.seed, THROUGH_PROXY, attention)
    (work / "schedule.json").write_text(json.dumps(plan, indent=1))
    (work / "requests.json").write_text(json.dumps(workload.make(options.seed, options.requests, MODEL, CANARY)))
    write_secrets(work, cluster)
    try:
        golden_run(work, cluster)
        injured_run(work, cluster, options, plan)
        code = checker.main([str(work)])
        if code != 0:
            print_log(work / "gateway.log")
        return code
    except RuntimeError:
        print_log(work / "gateway.log")
        raise
    finally:
        if options.keep:
            shutil.copytree(work, options.keep, dirs_exist_ok=True, symlinks=True,
                            ignore=shutil.ignore_patterns("*.key", "*.csr", "secret"))


if __name__ == "__main__":
    sys.exit(main())
