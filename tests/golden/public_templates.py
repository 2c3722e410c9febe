#!/usr/bin/env python3
"""Compares what Lamella and python3-jinja2 make of chat templates that others publish.

usage: public_templates.py TEMPLATE_TALK FOLDER ... [--conversations N] [--show N]
  TEMPLATE_TALK: build/release/tests/template_talk (ninja -C build/release template_talk)
  FOLDER: all *.jinja below it count, equal ones once. The source packages of llama-cpp-python and vllm at PyPI have
          160 of them: pip download --no-deps --no-binary :all: llama-cpp-python
  --conversations N   drawn as for chat_template_golden.py (24)
  --show N            differences that are printed (5)

Settings are those of the transformers library. A template that raises or fails has to do so in both. Exit code 1: fewer
than 99.5 % are equal.
"""

import argparse
import datetime
import difflib
import json
import pathlib
import random
import subprocess
import sys

import chat_template_golden as golden

parser = argparse.ArgumentParser()
parser.add_argument("program")
parser.add_argument("folders", nargs="+")
parser.add_argument("--conversations", type=int, default=24)
parser.add_argument("--show", type=int, default=5)
args = parser.parse_args()

templates, known = {}, set()
for path in sorted(path for folder in args.folders for path in pathlib.Path(folder).rglob("*.jinja")):
    source = path.read_text(encoding="utf-8")
    if source not in known:
        templates[str(path)] = source
    known.add(source)

rng, env = random.Random(golden.SEED), golden.environment()
cases = [{"input": golden.conversation(rng)} for _ in range(args.conversations)]
tokens = {"bos_token": "<s>", "eos_token": "</s>"}
now = int(golden.NOW.replace(tzinfo=datetime.timezone.utc).timestamp())
asked = json.dumps({**tokens, "now": now, "templates": templates, "cases": cases})
answers = subprocess.run([args.program], input=asked, text=True, check=True, capture_output=True).stdout.splitlines()

equal = texts = at = 0
for case in cases:
    for name, source in templates.items():
        made = golden.render(env, source, {**case["input"], **tokens})
        wanted = next((f"{kind}: {made[kind]}" for kind in ("output", "raised") if kind in made), "error")
        got = json.loads(answers[at])
        at += 1
        texts += "output" in made
        equal += got == wanted
        if got != wanted and args.show > 0:
            args.show -= 1
            print(f"{name}, conversation {at // len(templates)}: {made.get('error', '')}")
            print(*list(difflib.unified_diff(wanted.splitlines(), got.splitlines(), "jinja2", "lamella", "", "", 1))[:20],
                  sep="\n")
share = equal / at
print(f"{len(templates)} templates, {len(cases)} conversations: {equal} of {at} equal ({share:.1%}), {texts} have a text")
sys.exit(share < 0.995)
