#!/usr/bin/env bash
# Workers of the real program are injured under load, in every way there is: each answer that was
# accepted ends with the text it has without injuries.
#
# usage: tests/process/chaos_test.sh LAMELLA WRITE_TINY_MODEL SOURCE
set -uo pipefail
. "$(dirname "$0")/tiny_service.sh"

guarded() { serve log --config "$source/config/two-pools.yaml" "${tiny[@]}" --set pools.attention.spares=1 "$@"; }

guarded
got=$("$lamella" chaos kill --count 1 --streams 1 --tokens 8 --url "http://127.0.0.1:$port" \
  --admin "127.0.0.1:$admin" 2>&1)
expect "without chaos.enabled: exit code" 1 $?
contains "without chaos.enabled: it says what to set" "chaos.enabled: true" "$got"
stop "without chaos.enabled"

guarded --set chaos.enabled=true
chaos "kill" 25 kill --random --every 800ms --count 25 --for 300s --seed 7
expect "kill: the report tells what was computed again, and how long that may take" True "$(tail -n 1 page |
  json '("rebuild" not in x if x["recoveries"]["recompute"] == 0 else x["rebuild"]["injuries"] != [] and
    all(i["tokens"] > 0 and i["limit_ms"] > 1000 for i in x["rebuild"]["injuries"]))')"
for action in stop pause slow partition isolate corrupt drop oom; do
  chaos "$action" 2 "$action" --every 1s --count 2 --for 300s --tokens 192 --duration 400ms
done
# A replica is killed: the other one serves on, and /ready says that one is missing until it is back.
python3 - "$port" "$admin" >ready.txt <<'PYTHON'
import json, sys, time, urllib.request
port, admin = sys.argv[1:]
def ready():
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/ready", timeout=120) as reply:
            return reply.status, json.load(reply)["status"]
    except urllib.error.HTTPError as e:
        return e.code, json.load(e)["status"]
def wait_for(word, seconds):
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        seen.append(ready())
        if seen[-1][1] == word: return True
    return False
seen = []
print(wait_for("ok", 240))
body = json.dumps({"action": "kill", "target": "model/0"}).encode()
for _ in range(3): # it is degraded for a second or two: who stood still meanwhile has not seen it
    urllib.request.urlopen(urllib.request.Request(f"http://127.0.0.1:{admin}/admin/chaos", body,
                                                  {"content-type": "application/json"})).read()
    degraded = wait_for("degraded", 20)
    if degraded: break
print(degraded, wait_for("ok", 240), {code for code, _ in seen})
PYTHON
expect "/ready: degraded while a replica is missing, then ok, and never anything but 200" \
  "True True True {200}" "$(tr '\n' ' ' <ready.txt | sed 's/ $//')"
got=$(curl -sS -o reply -w '%{http_code}' -d '{"action":"tickle"}' -H 'content-type: application/json' \
  "http://127.0.0.1:$admin/admin/chaos")
expect "an unknown action: 400" 400 "$got"
got=$(curl -sS -o reply -w '%{http_code}' -d '{"action":"kill","target":"model/9"}' \
  -H 'content-type: application/json' "http://127.0.0.1:$admin/admin/chaos")
expect "a seat that nobody sits in: 409" 409 "$got"
stop "with processes alone"
guarded --set chaos.enabled=true --set pools.model.placement=in_process \
  --set pools.prefill.placement=in_process
chaos "kill, with seats in the service's own process" 3 kill --every 1500ms --count 3 --for 300s \
  --tokens 192
none_in_use "afterwards"
stop "at last"

finish
