#!/usr/bin/python3
"""The official JSON-Schema-Test-Suite (2020-12 and what v1 has beside it): of the schemas that are taken, no grammar
takes an instance that the suite calls invalid. tests/data/json_schema_test_suite has its groups and its licence.

usage: suite_test.py TALK
"""

import json
import lzma
import os
import sys

from oracle import Failures, Talk, texts_of

data = os.path.join(os.path.dirname(__file__), "../data/json_schema_test_suite/groups.json.xz")
talk = Talk(sys.argv[1])
fail = Failures()


compiled = invalid = valid = taken = 0
with lzma.open(data) as file:
    groups = json.load(file)
for group in groups:
    texts = [list(texts_of(test["data"])) for test in group["tests"]]
    got = talk.ask(schema=group["schema"], take=[text for layouts in texts for text in layouts])
    if "error" in got:
        continue
    compiled += 1
    answers = iter(got["taken"])
    for test, layouts in zip(group["tests"], texts):
        is_taken = any([next(answers) for _ in layouts])
        if test["valid"]:
            valid += 1
            taken += is_taken
        else:
            invalid += 1
            if is_taken:
                fail(f"{group['from']}: {group['description']}: {test['description']}: {test['data']!r} is taken")
talk.end()
print(f"{compiled} of {len(groups)} schemas are taken; of their instances {taken} of {valid} valid ones are, "
      f"and {fail.count} of {invalid} invalid ones")
if compiled < 150 or taken < 300:
    fail("too few were looked at")
sys.exit(1 if fail.count else 0)
