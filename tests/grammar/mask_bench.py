#!/usr/bin/python3
"""Times of token masks with a vocabulary of 131,072 tokens, on the valid instances of MaskBench's schemas.

usage: mask_bench.py MASK_BENCH VOCABULARY [FOLDER]
  VOCABULARY: a tekken.json, such as the one in PyPI's mistral-common (pip download --no-deps mistral-common)
  FOLDER (or LAMELLA_SCHEMAS): maskbench.tar.xz
  --every N     one of N schemas (8)
  --cases FILE  those of a file instead, as mask_bench.cpp takes them
  --rounds N    of each mask the shortest time of N rounds counts (1): what others do on the machine counts less
"""

import argparse
import base64
import json
import os
import subprocess
import tarfile
import tempfile

parser = argparse.ArgumentParser()
parser.add_argument("program")
parser.add_argument("vocabulary")
parser.add_argument("folder", nargs="?", default=os.environ.get("LAMELLA_SCHEMAS", ""))
parser.add_argument("--every", type=int, default=8)
parser.add_argument("--rounds", type=int, default=1)
parser.add_argument("--cases")
args = parser.parse_args()

with tempfile.NamedTemporaryFile("w", suffix=".txt") as tokens:
    for token in json.load(open(args.vocabulary, encoding="utf-8"))["vocab"]:
        tokens.write(base64.b64decode(token["token_bytes"]).hex() + "\n")
    tokens.flush()
    cases = []
    if args.cases:
        cases = open(args.cases, encoding="utf-8").read().splitlines()
    else:
        with tarfile.open(os.path.join(args.folder, "maskbench.tar.xz")) as archive:
            for number, member in enumerate(m for m in archive if m.name.endswith(".json")):
                if number % args.every == 0:
                    case = json.loads(archive.extractfile(member).read())
                    texts = [json.dumps(test["data"], separators=(", ", ": "), ensure_ascii=False)
                             for test in case["tests"] if test["valid"]]
                    cases.append(json.dumps({"schema": case["schema"], "texts": texts}))
    subprocess.run([args.program, tokens.name, str(args.rounds)], input="\n".join(cases), text=True, check=True)
