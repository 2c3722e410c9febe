#!/usr/bin/env bash
# TTFT of a short prompt behind a long one, as a multiple of its TTFT alone, and TBT of a stream beside prompts, with the
# default model in one process (prompts.py, whose JSON it prints): as configured, then first come, first served.
#
# usage: tests/process/prompts_bench.sh LAMELLA [--rounds N] [--long TOKENS] [--short TOKENS]
#   Exit code 77: skipped, no default model
set -uo pipefail
words=("${@:2}")
here=$(cd "$(dirname "$0")" && pwd)
. "$here/service.sh" 1 "${1:?$(sed -n 5,6p "$0")}"

for order in fair fcfs; do
  serve log --set batching.prompt_order=$order
  echo "$order: $(python3 "$here/prompts.py" "$port" "${words[@]}")"
  stop "$order"
done
finish
