#!/usr/bin/env bash
# How much streams feel of pools that change their sizes: random changes and drains of a service of worker processes with
# the default model, under open-loop load (scaling.py, whose JSON it prints).
#
# usage: tests/process/scale_bench.sh LAMELLA [--in-cells|--mixed-cells] [--events N] [--seed S] [--load PERCENT]
#          [--tokens N] [-- SERVE]
#   50 events by default; 200 make a soak. --in-cells: two attention cells change their sizes instead of one pool;
#   --mixed-cells: they are cut by heads or by requests by turns as well. SERVE: words of `lamella serve`, as
#   --set pools.attention.placement=in_process. Exit code 77: skipped, no default model
set -uo pipefail
words=() more=()
for word in "${@:2}"; do
  if [ "${rest:-}" ]; then more+=("$word"); elif [ "$word" = -- ]; then rest=1; else words+=("$word"); fi
done
attention=(--set pools.attention.members=1)
if [[ "${words[0]:-}" =~ ^--(in|mixed)-cells$ ]]; then
  [ "${words[0]}" = --in-cells ] || words+=(--cuts)
  words=("${words[@]:1}" --cells near=0,1,3/far=0,1)
  attention=(--set pools.attention.cells.near.members=1 --set pools.attention.cells.far.members=1)
fi
here=$(cd "$(dirname "$0")" && pwd)
. "$here/service.sh" 1 "${1:?$(sed -n 5,9p "$0")}"

serve log --set pools.model.placement=local --set pools.model.members=1 --set pools.attention.placement=local \
  "${attention[@]}" --set kv.bytes=256MiB "${more[@]}"
python3 "$here/scaling.py" "$port" "$admin" --events 50 --tokens 150 --model 1,2,3 "${words[@]}" >page
expect "no answer failed or differs, no change failed, no slot is left in use" 0 $?
cat page
# Of takeovers that moved KV, and of those that did not: seconds without a launch.
python3 - log <<'PYTHON'
import re, sys
moved, still = [], []
for line in open(sys.argv[1], errors="replace"):
    found = re.search(r"epoch taken over .*slots_moved=(\d+) .*stopped_seconds=([0-9.]+)", line)
    if found:
        (moved if int(found[1]) else still).append(1e3 * float(found[2]))
for name, x in (("with KV", sorted(moved)), ("without", sorted(still))):
    if x:
        print(f"launches stopped, {len(x)} changes {name}: p50 {x[len(x) // 2]:.1f} ms, p99 {x[int(0.99 * len(x))]:.1f} ms")
PYTHON
stop "the service"
finish
