#!/usr/bin/env bash
# TBT of streams beside prompts of 1,000 tokens, and what both get done: prompts in launches of their own, then in those of
# the batch (S-M02), in turns (mixed.py, whose JSON it prints), with the default model in one process.
#
# usage: tests/process/mixed_bench.sh LAMELLA [--rounds N] [--set KEY=VALUE]... [-- ARGUMENTS OF mixed.py]
#   Exit code 77: skipped, no default model
set -uo pipefail
lamella=$(realpath "${1:?$(sed -n 5,6p "$0")}")
shift
rounds=3 sets=()
while [ $# -gt 0 ]; do
  case $1 in
    --rounds) rounds=$2; shift ;;
    --set) sets+=(--set "$2"); shift ;;
    --) shift; break ;;
    *) echo "unknown option $1" >&2; exit 64 ;;
  esac
  shift
done
words=("$@")
here=$(cd "$(dirname "$0")" && pwd)
. "$here/service.sh" 1 "$lamella"

for _ in $(seq "$rounds"); do
  for launches in separate mixed; do
    serve log --set batching.launches=$launches "${sets[@]}"
    echo "$launches: $(python3 "$here/mixed.py" "$port" "${words[@]}")"
    stop "$launches"
  done
done
finish
