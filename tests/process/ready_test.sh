#!/usr/bin/env bash
# /ready tells the truth: workers of each role are killed and stopped, with and without somebody to
# take their place, and /ready is looked at all the time. A kill is to be told within 200 ms, a stop
# within the dead threshold and 100 ms; the lines "told ..." say how long it took, and the test allows
# five times that, for machines that run tests, and the time for which such a machine stood still.
#
# usage: tests/process/ready_test.sh LAMELLA SOURCE   (exit code 77: skipped, no default model)
set -uo pipefail
here=$(cd "$(dirname "$0")" && pwd)
. "$here/service.sh" 2 "$@"

of() { json "$1" <watch.json; }

# look NAME SIGNAL SEAT BOUND CODES TOLD: the first answer that tells is TOLD, all answers have
# CODES.
look() {
  local name="$1: $3 $2"
  python3 "$here/ready_watch.py" "$port" "$2" "$(pid_of "$3")" >watch.json
  echo "told $name: $(of 'x["told_ms"]') ms; ok again after $(of 'x["back_ms"]') ms; $(of '" ".join(map(str, x["codes"]))')"
  expect "$name: what is told" "$6" "$(of 'x["told"]')"
  expect "$name: within five times $4 ms" True \
    "$(of "x['told_ms'] is not None and x['told_ms'] - x['stood_ms'] <= 5 * $4")"
  expect "$name: the codes on the way" "$5" "$(of 'x["codes"]')"
  expect "$name: all is well again" True "$(of 'x["back_ms"] is not None')"
}

kill_bound=200
stop_bound=1100 # control.dead_seconds (by default) and 100 ms; a child is looked at more often

# Another member, a spare, or nobody needed: never anything but 200.
serve others.log --config "$source/config/two-pools.yaml" --set pools.attention.spares=1
look "A2 model replica, crash, with another" KILL model/0 $kill_bound "[200]" "200 degraded"
look "A2 model replica, STOP, with another" STOP model/1 $stop_bound "[200]" "200 degraded"
look "A2 prefill worker, crash" KILL prefill/0 $kill_bound "[200]" "200 degraded"
look "A2 prefill worker, STOP" STOP prefill/0 $stop_bound "[200]" "200 degraded"
look "A2 attention worker, crash, with a spare" KILL attention/0 $kill_bound "[200]" "200 degraded"
# The spare has the part of attention/0, which is the spare now.
look "A2 attention worker, crash, the spare" KILL attention/0 $kill_bound "[200]" "200 degraded"
expect "all members are up without the spare" "{'need': 3, 'up': 3, 'spares': 1, 'spares_up': 0}" \
  "$(of 'x["roles"]["attention"]')"
look "A2 attention worker, STOP, with a spare" STOP attention/1 $stop_bound "[200]" "200 degraded"
stop "with others"

serve parity.log --config "$source/config/parity.yaml"
look "A2 attention worker, crash, with parity and a spare" KILL attention/1 $kill_bound "[200]" "200 degraded"
look "A2 attention worker, STOP, with parity and a spare" STOP attention/0 $stop_bound "[200]" "200 degraded"
stop "with parity"

# Nobody else: not ready until somebody sits there again.
serve alone.log --config "$source/config/one-node.yaml"
for seat in model/0 attention/0; do
  look "A2 ${seat%/0}, crash, alone" KILL $seat $kill_bound "[200, 503]" "503 unavailable"
  contains "A2 ${seat%/0}, crash, alone: the reason" "role ${seat%/0} has no worker and no spare" "$(of 'x["reason"]')"
  look "A2 ${seat%/0}, STOP, alone" STOP $seat $stop_bound "[200, 503]" "503 unavailable"
done
stop "alone"

finish
