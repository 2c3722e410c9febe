#!/usr/bin/env bash
# An attention pool of one to three workers under a load that rises and falls, with the default model: the picture of
# docs/benchmarks.md. Every answer is compared with that of the same service at rest.
#
# usage: tests/process/autoscale_bench.sh LAMELLA SVG
#   Exit code 77: skipped, no default model
set -uo pipefail
picture=$(realpath "${2:?$(sed -n 5,6p "$0")}")
here=$(cd "$(dirname "$0")" && pwd)
. "$here/service.sh" 1 "${1:?}"

serve log --set pools.model.placement=local --set pools.model.members=1 --set pools.attention.placement=local \
  --set pools.attention.members=1 --set pools.attention.max=3 --set pools.attention.kv_bytes=32MiB \
  --set autoscale.cool_down_up_seconds=2 --set autoscale.cool_down_down_seconds=8 --set autoscale.trace_file=looks.jsonl
python3 - "$port" "$here" >page <<'PYTHON'
import sys, threading, time
sys.path.insert(0, sys.argv[2])
import scaling
service = scaling.Service(int(sys.argv[1]), 0, 400)
reference = {n: service.stream(n)[0] for n in range(scaling.PROMPTS)}
wrong, open_now, lock, began = [], 0, threading.Lock(), time.monotonic()
levels = [1, 1, 2, 4, 8, 12, 12, 12, 8, 4, 2, 1, 1, 1, 1]  # streams, five seconds each
load = open("load", "w")
print(sum("at_seconds" in x for x in open("looks.jsonl")), file=open("before", "w"))

def client(number):
    """One stream after the other while its level is asked for."""
    n = number
    while True:
        at = int((time.monotonic() - began) / 5)
        if at >= len(levels):
            return
        if number >= levels[at]:
            time.sleep(0.1)
            continue
        n = (n + 7) % scaling.PROMPTS
        text, _ = service.stream(n)
        if text != reference[n]:
            with lock:
                wrong.append(f"prompt {n}: {text[-120:]!r}")

threads = [threading.Thread(target=client, args=(n,)) for n in range(max(levels))]
for i, n in enumerate(levels):
    load.write(f"{5 * i} {n}\n")
load.close()
for x in threads:
    x.start()
for x in threads:
    x.join()
time.sleep(15)
print(f"wrong or failed: {len(wrong)}", *wrong[:3], sep="\n")
sys.exit(1 if wrong else 0)
PYTHON
expect "every answer is that of the service at rest" 0 $?
cat page
grep -o 'autoscaling pool=.*' log
python3 "$here/autoscale_graph.py" looks.jsonl "$picture" --load load --skip "$(cat before)"
expect "the picture is drawn" 0 $?
stop "the service"
finish
