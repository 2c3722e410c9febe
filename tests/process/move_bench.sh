#!/usr/bin/env bash
# How fast the KV of one sequence of 4,000 tokens moves to other shards, as a share of what a link over shared memory
# carries in the same run: a pool of worker processes with the default model grows from one shard to three and back,
# `--rounds` times (3). A move is everything from the first copied piece to the epoch that takes over.
#
# usage: tests/process/move_bench.sh LAMELLA [--rounds N]
#   Exit code 77: skipped, no default model
set -uo pipefail
lamella=$(realpath "${1:?$(sed -n 6,7p "$0")}")
rounds=3
[ "${2:-}" != --rounds ] || rounds=$3
here=$(cd "$(dirname "$0")" && pwd)
. "$here/service.sh" 1 "$lamella"

serve log --set pools.model.placement=local --set pools.attention.placement=local --set pools.attention.members=1 \
  --set kv.bytes=256MiB --set net.transport=shm
python3 - "$port" <<'PYTHON'
import json, sys, urllib.request
url = f"http://127.0.0.1:{sys.argv[1]}/v1"
model = json.load(urllib.request.urlopen(f"{url}/models", timeout=60))["data"][0]["id"]
body = {"model": model, "prompt": "the " * 4000, "max_tokens": 1}
urllib.request.urlopen(urllib.request.Request(f"{url}/completions", json.dumps(body).encode(),
                                              {"content-type": "application/json"}), timeout=600).read()
PYTHON
for _ in $(seq "$rounds"); do
  for members in 3 1; do
    "$lamella" scale attention=$members --admin "127.0.0.1:$admin" >scaled 2>&1 || fail "scale to $members" "$(cat scaled)"
  done
done
"$lamella" events --admin "127.0.0.1:$admin" --json >events
"$lamella" bench channel --tier shm --json >channel
python3 - events channel <<'PYTHON'
import json, statistics, sys
rates = []
for line in open(sys.argv[1]):
    x = json.loads(line)
    x.update(x.get("fields", x.get("values", {})))
    if x.get("event", x.get("kind")) == "kv_moved":
        rates.append(x["bytes"] / x["seconds"] / 1e9)
        print(f"{x['slots']} slots, {x['bytes'] / 1e6:.1f} MB in {1e3 * x['seconds']:.1f} ms: {rates[-1]:.2f} GB/s")
link = max(x["gb_per_s"] for x in json.load(open(sys.argv[2]))["rows"] if x.get("tier") == "shm")
best, median = max(rates), statistics.median(rates)
print(f"a link over shared memory: {link:.2f} GB/s; moves of it, best {best / link:.2f}, median {median / link:.2f}")
PYTHON
stop "the service"
finish
