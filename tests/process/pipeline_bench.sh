#!/usr/bin/env bash
# Tokens per second of the same sequences in one batch and in two (Lamina 4.3 with n = 2), in turn: a replica and a
# shard of the default model, each a process with a thread on a processor of its own (pipeline.py counts).
#
# usage: tests/process/pipeline_bench.sh LAMELLA [SEQUENCES [CONTEXT [SECONDS [ROUNDS]]]]   (32, 100, 5, 3)
#   Exit code 77: skipped, no default model
set -uo pipefail
words=("${@:2}")
here=$(cd "$(dirname "$0")" && pwd)
. "$here/service.sh" 1 "${1:?$(sed -n 5,6p "$0")}"
sequences=${words[0]:-32} context=${words[1]:-100} seconds=${words[2]:-5} rounds=${words[3]:-3}

# pin ROLE PROCESSOR
pin() {
  for pid in $(status | json '" ".join(str(w["pid"]) for w in x["workers"] if w["role"] == "'"$1"'")'); do
    taskset -a -p -c "$2" "$pid" >/dev/null
  done
}

for _ in $(seq "$rounds"); do
  for batches in 1 2; do
    serve log --set pools.model.placement=local --set pools.attention.placement=local --set pools.model.threads=1 \
      --set pools.attention.threads=1 --set kv.prefix_cache_seconds=0 --set "batching.batches=$batches" \
      --set "batching.max_batch=$((sequences / batches))"
    "$lamella" status --wait 60 --admin "127.0.0.1:$admin" >/dev/null
    pin model 0
    pin attention 1
    echo "$batches batches: $(python3 "$here/pipeline.py" "$port" "$admin" "$sequences" "$context" "$seconds") tokens/s"
    kill -KILL "$server" # its streams go on for long
    wait "$server" 2>/dev/null
    server=
  done
done
