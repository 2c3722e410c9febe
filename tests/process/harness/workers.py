"""Invariants of workers and their supervision: I8, I9, I13, I15, and that injuries did what they should."""
import collections
import re

from evidence import series_of

CRASH_WORDS = re.compile(r"Sanitizer|runtime error:|terminate called|[Aa]ssertion|core dumped|Segmentation|Aborted|"
                         r"stack smashing|free\(\): |double free|corrupted size")
JOINS_MAX, JOINS_SECONDS = 25, 10  # of one worker: more is a busy loop; joining again waits 0.1 s at least
# What ends the connection between a worker and the service, and nothing else of it.
FATAL = ("kill", "slow_join", "flip", "truncate", "reset", "half_close")
# A worker ends so whose seat was taken away, and with 69 where its pool is full: its seat is still thought to be taken.
BY_ITSELF = {0, 69}


def seat_events(evidence):
    """(at, "joined", "lost" or "sent", words) in the gateway's order; sent away: by an operator's order."""
    for line in evidence.gateway_lines("worker "):
        what = line.message.split()[1]
        if what in ("joined", "lost", "sent") and "seat=" in line.message:
            yield line.at, what, line.words()


def i8_one_incarnation_sits_in_a_seat(evidence):
    """A seat is taken by the next incarnation when the one before is lost, and epochs only grow."""
    problems = []
    sits, last = {}, collections.defaultdict(int)
    for _, what, words in seat_events(evidence):
        seat, incarnation = words["seat"], int(words["incarnation"])
        if what == "joined":
            if seat in sits:
                problems.append(f"{seat}: {incarnation} joined while {sits[seat]} sits")
            if incarnation <= last[seat]:
                problems.append(f"{seat}: incarnation {incarnation} after {last[seat]}")
            sits[seat] = last[seat] = incarnation
        elif sits.pop(seat, None) != incarnation:
            problems.append(f"{seat}: incarnation {incarnation} is {what} and did not sit")
    if not last:
        problems.append("nobody has joined")
    for name, lines in evidence.logs.items():
        epoch = 0
        for line in lines:
            if line.message.startswith("epoch open "):
                now = int(line.words()["epoch"])
                if now <= epoch:
                    problems.append(f"{name}: epoch {now} after {epoch}")
                epoch = now
    epoch = 0
    for status in evidence.statuses():
        now = max(status["epochs"].values())
        if now < epoch:
            problems.append(f"status: epoch {now} after {epoch}")
        epoch = max(epoch, now)
        seats = [x["seat"] for x in status["workers"]]
        for seat in {x for x in seats if seats.count(x) > 1}:
            problems.append(f"status: {seat} is taken twice")
    return problems


def highest(evidence, name, labels=""):
    """The highest value that a series ever had, over all pages; None where no page has it."""
    return max((value for page in evidence.metrics() for found, value in series_of(page, name) if labels in found),
               default=None)


def digests_compared(evidence):
    """Positions whose K and V were read in one epoch and again in a later one."""
    return int(highest(evidence, "lamella_kv_digests_compared_total") or 0)


def i9_rebuilt_rows_are_the_same(evidence):
    """K and V of a position have the same digest before and after workers were lost, whether they were kept, copied
    together or computed again; and where both sides of a move tell digests, they agree."""
    problems = [x.text for x in evidence.gateway
                if x.message.startswith(("KV transfer digests differ", "KV digest changed"))]
    for where in ("rebuild", "transfer"):
        failures = highest(evidence, "lamella_kv_integrity_failures_total", f'where="{where}"')
        if failures is None:
            problems.append(f"nobody counts damage by {where}")
        elif failures:
            problems.append(f"{failures:g} times K and V were others after a {where}")
    if highest(evidence, "lamella_kv_digests_compared_total") is None:
        problems.append("nobody compares digests")
    return problems


def i10_the_parity_is_right(evidence):
    """Whatever the service compares of a pool's parity, all through the run, is the XOR of the shards' rows."""
    wrong = [sum(value for _, value in series_of(page, "lamella_parity_mismatches_total"))
             for page in evidence.metrics()]
    return [f"{max(wrong):g} slots had a wrong parity"] if any(wrong) else []


def i13_restarts_are_rare(evidence):
    """Losses are no restarts of the supervisor's, which has none; and nobody joins in a busy loop."""
    problems = [x.text for x in evidence.gateway
                if x.message.startswith(("restarting after a fault", "restart limit exceeded"))]
    joins = collections.defaultdict(list)
    for at, what, words in seat_events(evidence):
        if what == "joined":
            joins[words["worker"]].append(at)
    for worker, times in joins.items():
        for i, at in enumerate(times):
            if i >= JOINS_MAX and at - times[i - JOINS_MAX] < JOINS_SECONDS:
                problems.append(f"{worker} joined {JOINS_MAX} times within {JOINS_SECONDS} s")
                break
    return problems


def i15_nobody_crashes(evidence):
    """Processes end as they are told to, and no log tells of a crash."""
    problems = []
    for x in evidence.exits:
        allowed = {"end": {0}, "kill": {-9} | BY_ITSELF, "retire": {0, -9, -15} | BY_ITSELF, None: BY_ITSELF}[x["cause"]]
        if x["code"] not in allowed:
            problems.append(f"{x['name']} (pid {x['pid']}) ended with {x['code']}, cause {x['cause']}")
    if not any(x["name"] == "gateway" for x in evidence.exits):
        problems.append("nobody saw the gateway end")
    for name, lines in evidence.logs.items():
        for line in lines:
            if line.level == "critical" or CRASH_WORDS.search(line.text):
                problems.append(f"{name}.log: {line.text[:200]}")
    return problems


def history(evidence):
    """Worker -> [(at, "joined", "lost" or "sent")]."""
    found = collections.defaultdict(list)
    for at, what, words in seat_events(evidence):
        found[words["worker"]].append((at, what))
    return found


def changes_of_sizes(evidence):
    """How often pools got another size, and how often they did not."""
    return {name: len(evidence.gateway_lines(line))
            for name, line in (("done", "pool resized "), ("rolled back", "pool not resized "))}


def joins_wait_for_the_handshake(evidence):
    """Nobody takes a handshake that is under way for the silence of a connection."""
    return [f"{name}: {line.message}" for name, lines in evidence.logs.items() for line in lines
            if line.message.startswith("cannot join") and "connection_timeout" in line.message]


def injuries_have_their_effect(evidence):
    """Who was killed or whose link was broken while it sat is lost, the link is closed, and the service counts it;
    afterwards everybody sits again."""
    problems, uncounted, countable = [], [], 0
    events = history(evidence)
    begins = {x["number"]: x["t"] for x in evidence.nemesis if x["event"] == "begin"}
    for x in evidence.nemesis:
        if x["event"] == "healed" and not x["whole"]:
            problems.append(f"not whole {x['seconds']} s after the last injury")
        if x["event"] != "effect":
            continue
        begin = begins[x["number"]]
        who = f"injury {x['number']} ({x['kind']} {' '.join(x['targets'])})"
        if not x["whole"]:
            problems.append(f"{who}: not whole {x['seconds']} s later")
        if x["kind"] not in FATAL + ("stop",):
            continue
        lost = {}
        for name in x["targets"]:
            before = [what for at, what in events[name] if at < begin]
            # Who was about to leave may be sent away before anybody misses it.
            after = [at for at, what in events[name] if what in ("lost", "sent") and begin <= at <= x["t"]]
            if before[-1:] == ["joined"] and not after:
                problems.append(f"{who}: {name} sat and was not lost")
            lost |= {name: min(after)} if after else {}
        if x["kind"] in ("flip", "truncate", "reset", "half_close") and not x["closed"]:
            problems.append(f"{who}: the link was not closed")
        # A spare is lost without a failover, two at once may be one, and so may who is lost while an epoch opens: it
        # is half of them that must be counted.
        alone = not any(begin - 1 < at <= x["t"] for name, all_of in events.items() if name not in x["targets"]
                        for at, what in all_of if what == "lost")
        needed = lost and alone and not all(name.startswith("attention") for name in lost)
        if needed and x["counted"] is not None:
            countable += 1
            if x["counted"] < 1:
                uncounted.append(f"{who}: lost, and not counted in lamella_failovers_total")
    if len(uncounted) * 2 > countable:
        problems += uncounted
    if not begins:
        problems.append("nobody was injured")
    return problems


def others_keep_their_links(evidence):
    """The end of one worker's link ends no others. Machines that stall lose some by themselves, so it takes three
    injuries that each came with three others lost within a fifth of a second."""
    events = history(evidence)
    bad = []
    for x in evidence.nemesis:
        if x["event"] != "begin" or x["kind"] not in FATAL:
            continue
        lost = [at for name in x["targets"] for at, what in events[name] if what == "lost" and at >= x["t"]]
        if not lost:
            continue
        others = {name for name, all_of in events.items() if name not in x["targets"]
                  for at, what in all_of if what == "lost" and 0 <= at - min(lost) < 0.2}
        if len(others) >= 3:
            bad.append(f"injury {x['number']} ({x['kind']} {' '.join(x['targets'])}): also lost {sorted(others)}")
    return bad if len(bad) >= 3 else []
