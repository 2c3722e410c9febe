"""How long streams stood still while somebody was injured, against what the schedule allows."""


def quantile(values, q):
    """Nearest rank; 0 of nothing."""
    ordered = sorted(values)
    return ordered[int(q * (len(ordered) - 1) + 0.5)] if ordered else 0


def silences(evidence, begin=float("-inf"), end=float("inf")):
    """The longest silence of each complete stream that went on between these times, in milliseconds."""
    found = []
    for x in evidence.attempts.values():
        if not x.stream or not x.is_complete or len(x.times) < 3:
            continue
        gaps = [b - a for a, b in zip(x.times, x.times[1:]) if b > begin and a < end]
        if gaps:
            found.append(1e3 * max(gaps))
    return found


def pauses_by_kind(evidence):
    """Kind of injury -> how long streams stood still while it lasted, in milliseconds: from its beginning to that of the
    next one, or until all was well. A size that changes while a worker is killed is a kind of its own."""
    ends = {x["number"]: x["t"] for x in evidence.nemesis if x["event"] == "effect"}
    begins = [x for x in evidence.nemesis if x["event"] == "begin"]
    found, changing = {}, False
    for x, after in zip(begins, begins[1:] + [None]):
        end = ends.get(x["number"], after["t"] if after else float("inf"))
        kind = f"{x['kind']} while scaling" if changing else x["kind"]
        found.setdefault(kind, []).extend(silences(evidence, x["t"], end))
        changing = x["kind"] in ("scale", "cells") and x["number"] not in ends
    return {kind: {"streams": len(all_of), "p50": round(quantile(all_of, 0.5)), "p99": round(quantile(all_of, 0.99)),
                   "max": round(quantile(all_of, 1))} for kind, all_of in sorted(found.items())}


def pauses_are_short(evidence):
    """Of each injury with a bound: 99 of 100 streams stood still for no longer than that while it lasted, and some
    did go on meanwhile."""
    problems = []
    for x in evidence.nemesis:
        if x["event"] != "begin" or not x.get("pause_ms"):
            continue
        who = f"injury {x['number']} ({x['kind']} {' '.join(x['targets'])}, {x['seconds']} s)"
        found = silences(evidence, x["t"], x["t"] + x["seconds"])
        if not found:
            problems.append(f"{who}: no stream went on")
        elif (p99 := quantile(found, 0.99)) > x["pause_ms"]:
            problems.append(f"{who}: p99 of the pauses of {len(found)} streams is {p99:.0f} ms, {x['pause_ms']} may be")
    return problems
