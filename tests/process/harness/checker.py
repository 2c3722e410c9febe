#!/usr/bin/env python3
"""Checks a run's files against the invariants of the service, I1 to I16, one function for each: it takes the
evidence and gives back what is wrong, in words. Ends with one line of JSON.

usage: checker.py FOLDER
"""
import json
import sys

import answers
import leftovers
import pauses
import workers
from evidence import Evidence, series_of
from pauses import quantile, silences

# What cannot be seen from outside a process, and what stands for it.
UNSEEN = {
    "i4": "committed tokens are shown to nobody but the client: a changed one is a wrong token (i3) or a position "
          "said twice (i2)",
    "i7": "receivers do not tell what they drop: a stale frame that was used makes a wrong token (i3)",
}
INVARIANTS = {
    "i1": answers.i1_every_accepted_request_ends_once,
    "i2": answers.i2_positions_come_once_and_in_order,
    "i3": answers.i3_tokens_are_golden,
    "i5": leftovers.i5_slots_add_up,
    "i6": leftovers.i6_nothing_leaks,
    "i8": workers.i8_one_incarnation_sits_in_a_seat,
    "i9": workers.i9_rebuilt_rows_are_the_same,
    "i10": workers.i10_the_parity_is_right,
    "i11": leftovers.i11_memory_comes_back,
    "i12": leftovers.i12_queues_and_waits_are_bounded,
    "i13": workers.i13_restarts_are_rare,
    "i14": leftovers.i14_ready_means_ready,
    "i15": workers.i15_nobody_crashes,
    "i16": leftovers.i16_secrets_stay_secret,
    "injuries": workers.injuries_have_their_effect,
    "joins": workers.joins_wait_for_the_handshake,
    "others": workers.others_keep_their_links,
    "pauses": pauses.pauses_are_short,
}


def recoveries(evidence):
    pages = evidence.metrics()
    found = series_of(pages[-1], "lamella_requests_recovered_total") if pages else []
    return {labels.split('method="')[1].split('"')[0]: int(value) for labels, value in found if 'method="' in labels}


def report(evidence):
    """Prints what is wrong and, at last, one line of JSON. Whether all is well."""
    wrong = {name: check(evidence) for name, check in INVARIANTS.items()}
    for name, reason in UNSEEN.items():
        if name not in wrong:
            print(f"{name:8} not seen from outside: {reason}")
    for name, problems in wrong.items():
        print(f"{name:8} {'holds' if not problems else f'BROKEN, {len(problems)} times'}")
        for problem in problems[:8]:
            print(f"         {problem}")
    stood_still = silences(evidence)
    passed = not any(wrong.values())
    print(json.dumps({
        "version": 1, "injected": sum(x["event"] == "begin" for x in evidence.nemesis),
        "requests": len(evidence.attempts), "refused": sum(x.is_refused for x in evidence.attempts.values()),
        "lost": len(wrong["i1"]), "wrong": len(wrong["i3"]), "duplicates": len(wrong["i2"]),
        "pause_ms": {"p50": round(quantile(stood_still, 0.5)), "p99": round(quantile(stood_still, 0.99)),
                     "max": round(quantile(stood_still, 1))},
        "pause_ms_by_kind": pauses.pauses_by_kind(evidence),
        "changes": workers.changes_of_sizes(evidence),
        "epochs": sum(x.message.startswith("epoch open ") for x in evidence.gateway),
        "recoveries": recoveries(evidence), "digests_compared": workers.digests_compared(evidence),
        "broken": sorted(name for name, problems in wrong.items() if problems), "passed": passed}))
    return passed


def main(words):
    if len(words) != 1:
        print(__doc__, file=sys.stderr)
        return 2
    return 0 if report(Evidence(words[0])) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
