"""Invariants of what is left over: I5, I6, I11, I12, I14, I16."""
import collections
import math
import re

from evidence import series_of

DEADLINE_SECONDS = 600      # limits.request_deadline_seconds
WAITING_MAX = 512           # limits on waiting requests
MEMORY_SLACK_KIB = 24 << 10 # of allocators, beyond the five in a hundred
# Descriptors and threads that may come and go: a connection of a probe, one that is just being closed.
DESCRIPTOR_SLACK, THREAD_SLACK = 6, 3


def slots_of_workers(page):
    """Worker -> state -> slots, as the metrics tell them."""
    found = collections.defaultdict(dict)
    for labels, value in series_of(page, "lamella_kv_slots"):
        worker, state = (re.search(rf'{key}="([^"]*)"', labels)[1] for key in ("worker", "state"))
        found[worker][state] = value
    return found


def i5_slots_add_up(evidence):
    """The free list and the slots with a reference are the pool, every reference is some holder's and every holder's
    slot has one, all workers tell of as many slots, and nothing is held when all is drained but by the prefix cache. The service counts each
    of these on its own; shards have no table of their own to compare (they reserve nothing)."""
    problems = []
    # More members of a pool by heads have more slots together: one number of slots for each size.
    sizes = {x["members"] for x in evidence.nemesis if x.get("kind") == "scale" and x["targets"] == ["attention"]
             and "members" in x}
    sizes |= {pool.get("members") for status in evidence.statuses()[:1] for pool in status["pools"]}
    sizes |= {int(x.words()["members"]) for x in evidence.gateway_lines("pool serves with fewer members ")}
    # A worker that is drained without a spare leaves a smaller pool.
    sizes |= {int(x.words()["to"]) for x in evidence.gateway_lines("pool resizing pool=attention ")}
    most = max(len(sizes), combinations_of_cells(evidence))
    totals = collections.defaultdict(set)
    for status in evidence.statuses():
        for pool in status["pools"]:
            slots, references = pool["slots"], pool["references"]
            parts = slots["free"] + slots["used"] + slots["cached"] + slots["orphan"]
            if min(slots.values()) < 0 or parts != slots["total"]:
                problems.append(f"pool {pool['name']}: {slots} do not add up")
            totals[pool["name"]].add(slots["total"])
            if references["counted"] != references["held"]:
                problems.append(f"pool {pool['name']}: {references['counted']} references, {references['held']} held")
    problems += [f"pool {name}: {sorted(found)} slots, of {most} sizes at most"
                 for name, found in totals.items() if len(found) > most]
    cells = max((len(x["cells"]) for x in evidence.nemesis if "cells" in x), default=1)
    for page in evidence.metrics():
        sums = {name: sum(states.values()) for name, states in slots_of_workers(page).items()}
        if len(set(sums.values()) - {0}) > cells:  # 0: of a worker that nobody has told anything of yet
            problems.append(f"workers have more numbers of slots than there are cells, {cells}: {sums}")
    # The service's own canary holds a slot now and then: nothing in one of the looks is enough.
    drained = [x for x in evidence.statuses("drained") if x["pools"]]
    if not drained:
        problems.append("nobody looked at the pools of the drained service")
        return problems
    for what, of in (("slots are in use", lambda p: p["slots"]["used"] + p["slots"]["orphan"]),
                     ("references are left", lambda p: p["references"]["counted"] - p["slots"]["cached"])):
        if left := min(sum(of(p) for p in x["pools"]) for x in drained):
            problems.append(f"{left} {what} after all requests have ended")
    return problems


def combinations_of_cells(evidence):
    """How many the pool may have been of: each cell in any way that a reload or a drained worker made of it."""
    ways = collections.defaultdict(lambda: {"absent"})
    for x in evidence.nemesis:
        for name, options in x.get("cells", {}).items():
            ways[name].add(str(sorted(options.items())))
    for line in evidence.gateway_lines("pool resizing pool=attention/"):
        ways[line.words()["pool"].split("/")[1]].add(line.words()["to"])
    return math.prod(len(x) for x in ways.values())


def least(evidence, phase, name):
    """The least sum of a metric's series on the pages of a phase; None where there is none."""
    sums = [sum(v for _, v in found) for page in evidence.metrics(phase) if (found := series_of(page, name))]
    return min(sums, default=None)


def role_of(process):
    return process.split("-")[0]


def i6_nothing_leaks(evidence):
    """Drained, no request, batch, descriptor or thread is left over beyond what was there when idle."""
    problems = []
    drained = evidence.statuses("drained")
    if not drained:
        return ["nobody looked at the drained service"]
    if left := min(x["gateway"]["requests"] for x in drained):
        problems.append(f"{left} requests are left at the gateway")
    for what in ("running", "waiting"):
        if left := min(x["requests"][what] for x in drained):
            problems.append(f"{left} requests are still {what}")
    if left := least(evidence, "drained", "lamella_batches_in_flight"):
        problems.append(f"{left:g} batches are in flight")
    # A worker may take another seat's part of its pool: the most that one of its role had is the measure.
    most = {}
    for x in evidence.processes("idle"):
        for what in ("descriptors", "threads"):
            key = role_of(x["process"]), what
            most[key] = max(most.get(key, 0), x[what])
    fewest = {}
    for x in evidence.processes("drained"):
        for what in ("descriptors", "threads"):
            key = x["process"], what
            fewest[key] = min(fewest.get(key, x[what]), x[what])
    for (name, what), count in fewest.items():
        slack = DESCRIPTOR_SLACK if what == "descriptors" else THREAD_SLACK
        before = most.get((role_of(name), what))
        if before is None:
            problems.append(f"{name} was not looked at when idle")
        elif count > before + slack:
            problems.append(f"{name} has {count} {what}, {before} when idle")
    return problems


def i11_memory_comes_back(evidence):
    """The gateway's memory is that of before the load, within five in a hundred and some slack."""
    before = [x["rss_kib"] for x in evidence.processes("idle") if x["process"] == "gateway"]
    after = [x["rss_kib"] for x in evidence.processes("drained") if x["process"] == "gateway"]
    if not before or not after:
        return ["the gateway's memory was not looked at"]
    if min(after) > 1.05 * min(before) + MEMORY_SLACK_KIB:
        return [f"the gateway has {min(after)} KiB, {min(before)} before the load"]
    return []


def i12_queues_and_waits_are_bounded(evidence):
    """No more requests wait than may, and none lasts longer than its deadline and a second."""
    problems = []
    for status in evidence.statuses():
        if status["requests"]["waiting"] > WAITING_MAX:
            problems.append(f"{status['requests']['waiting']} requests wait, {WAITING_MAX} may")
    for line in evidence.gateway_lines("request_id="):
        words = line.words()
        if float(words["e2e_ms"]) > 1e3 * (DEADLINE_SECONDS + 1):
            problems.append(f"{words['request_id']} lasted {words['e2e_ms']} ms")
    return problems


def i14_ready_means_ready(evidence):
    """Who says that it is ready before and after takes the request in between: three times in a row it did not
    is a lie, fewer may be a worker that was lost in the middle."""
    problems = []
    row = longest = asked = 0
    for x in evidence.samples:
        if x.get("probe") == "asked":
            asked += 1
            row = row + 1 if x["ready"] == x["ready_after"] == 200 and x["answer"] != 200 else 0
            longest = max(longest, row)
    if longest >= 3:
        problems.append(f"{longest} times in a row it was ready and refused a request")
    if asked == 0:
        problems.append("nobody asked whether it is ready")
    return problems


def i16_secrets_stay_secret(evidence):
    """No key, secret or prompt is in a log, a metric, a status or an error."""
    problems = []
    texts = {f"{name}.log": "\n".join(x.text for x in lines) for name, lines in evidence.logs.items()}
    for i, page in enumerate(evidence.metrics()):
        texts[f"metrics page {i}"] = page
    for i, status in enumerate(evidence.statuses()):
        texts[f"status {i}"] = str(status)
    for x in evidence.attempts.values():
        texts[f"errors and headers of {x.identity}"] = f"{x.errors} {x.headers}"
    if not evidence.secrets:
        problems.append("no secrets to look for")
    for number, secret in enumerate(evidence.secrets):
        for name, text in texts.items():
            if secret in text:
                problems.append(f"secret {number} is in {name}")
    return problems
