#!/usr/bin/python3
"""How many schemas of others structured output is right about: MaskBench's, with their instances, and the official
JSON-Schema-Test-Suite (2020-12, core). No invalid instance may be taken. The archives are no part of this repository;
where they are missing, nothing is measured.

usage: coverage_test.py TALK [FOLDER]   FOLDER (or LAMELLA_SCHEMAS): maskbench.tar.xz, json_schema_test_suite.tar.xz
  --standard    what a schema says nothing about is open, as the standard has it
  --list WHY    names of MaskBench's schemas whose refusal has WHY in it
  --lost        names of MaskBench's schemas that are taken, and valid instances that are not
"""

import argparse
import collections
import json
import os
import re
import sys
import tarfile

from oracle import Failures, Talk, texts_of

parser = argparse.ArgumentParser()
parser.add_argument("talk")
parser.add_argument("folder", nargs="?", default=os.environ.get("LAMELLA_SCHEMAS", ""))
parser.add_argument("--standard", action="store_true")
parser.add_argument("--list", metavar="WHY")
parser.add_argument("--lost", action="store_true")
parser.add_argument("--reasons", type=int, default=30)
args = parser.parse_args()

archives = [os.path.join(args.folder, name) for name in ("maskbench.tar.xz", "json_schema_test_suite.tar.xz")]
if not args.folder or not all(os.path.exists(path) for path in archives):
    print("skipped: LAMELLA_SCHEMAS names no folder with maskbench.tar.xz and json_schema_test_suite.tar.xz")
    sys.exit(77)
talk = Talk(args.talk)
reading = {"reading": "standard"} if args.standard else {}
fail = Failures()


def members(path, wanted):
    with tarfile.open(path) as archive:
        for member in archive:
            if member.isfile() and re.fullmatch(wanted, member.name.removeprefix("./")):
                yield member.name, json.loads(archive.extractfile(member).read())


def ask(schema, instances):
    """The answer, and which instances are taken in some layout."""
    texts = [list(texts_of(value)) for value in instances]
    got = talk.ask(schema=schema, take=[text for layouts in texts for text in layouts], **reading)
    if "error" in got:
        return got, []
    answers = iter(got["taken"])
    return got, [any([next(answers) for _ in layouts]) for layouts in texts]


def reason(error):
    """Without what is of this schema only."""
    pointer, _, why = error.partition(" ")
    keyword = pointer.rsplit("/", 1)[-1] if pointer.startswith("/") else ""
    why = re.sub(r"/\S+", "…", why if keyword else error)
    return f"{keyword} {re.sub(r'[0-9]+', 'N', why)[:90]}"


def percent(n, of):
    return f"{n} of {of} ({100 * n / max(of, 1):.1f} %)"


def quantiles(times):
    times = sorted(times)
    return ", ".join(f"{name} {times[min(int(q * len(times)), len(times) - 1)]:.2f}"
                     for name, q in (("p50", 0.5), ("p90", 0.9), ("p99", 0.99), ("max", 1)))


def maskbench():
    reasons, compiling, searching = collections.Counter(), [], []
    count = taken = right = valid = lost = invalid = let_through = annotated = 0
    for name, case in members(archives[0], r".*\.json"):
        count += 1
        tests = case["tests"]
        got, answers = ask(case["schema"], [test["data"] for test in tests])
        if "error" in got:
            reasons[reason(got["error"])] += 1
            if args.list and args.list in got["error"]:
                print(name, got["error"][:300])
            continue
        taken += 1
        compiling.append(got["compile_ms"])
        searching.append(got["search_ms"])
        right += all(is_taken == test["valid"] for test, is_taken in zip(tests, answers))
        for test, is_taken in zip(tests, answers):
            if test["valid"]:
                valid += 1
                lost += not is_taken
                if args.lost and not is_taken:
                    print("lost:", name, json.dumps(test["data"])[:300])
            else:
                invalid += 1
                if is_taken:
                    let_through += 1
                    fail(f"{name}: an invalid instance is taken: {json.dumps(test['data'])[:300]}")
    print(f"MaskBench: taken {percent(taken, count)}, right on all instances {percent(right, count)}")
    print(f"  invalid instances let through: {let_through} of {invalid}; valid ones lost: {lost} of {valid}")
    print(f"  compiling, ms: {quantiles(compiling)}; search for ambiguity, ms: {quantiles(searching)}")
    print("  refused:")
    for why, n in reasons.most_common(args.reasons):
        print(f"    {n:5} {why}")
    return right


def suite():
    count = right = refused = over = under = 0
    for name, groups in members(archives[1], r"tests/draft2020-12/[^/]*\.json"):
        for group in groups:
            tests = group["tests"]
            count += len(tests)
            got, answers = ask(group["schema"], [test["data"] for test in tests])
            if "error" in got:
                refused += len(tests)
                continue
            for test, is_taken in zip(tests, answers):
                right += is_taken == test["valid"]
                over += test["valid"] and not is_taken
                if is_taken and not test["valid"]:
                    under += 1
                    fail(f"{name}: {group['description']}: {test['description']}: {test['data']!r} is taken")
    print(f"official suite 2020-12, core: right {percent(right, count)}, under-constrained {under}, "
          f"over-constrained {over}, of refused schemas {refused}")
    return right


right_of_maskbench, right_of_suite = maskbench(), suite()
talk.end()
if right_of_maskbench < 7900 or right_of_suite < 860:
    fail("fewer are right than ever before")
sys.exit(1 if fail.count else 0)
