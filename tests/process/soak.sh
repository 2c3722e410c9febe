#!/usr/bin/env bash
# Five hundred injuries of a service's workers under load, in every way there is and in pools of both
# kinds: nothing is lost, wrong or said twice, and nothing is left over. About half an hour.
#
# usage: tests/process/soak.sh LAMELLA SOURCE   (exit code 77: skipped, no default model)
set -uo pipefail
seed=${LAMELLA_SEED:-$(date +%s)} # before service.sh, which clears what it finds
. "$(dirname "$0")/service.sh" 2 "$@"

echo "LAMELLA_SEED=$seed"
for pools in parity two-pools; do
  serve log --config "$source/config/$pools.yaml" --set chaos.enabled=true --set pools.attention.spares=1
  chaos "$pools: kill" 145 kill --random --every 2s --count 145 --for 600s --seed "$seed"
  for action in stop pause slow partition isolate corrupt drop oom; do
    chaos "$pools: $action" 15 "$action" --random --every 3s --count 15 --for 90s --seed "$seed" \
      --duration 400ms
  done
  none_in_use "$pools: afterwards"
  pids=$(children)
  stop "$pools: at last"
  gone $pids
  expect "$pools: no worker process is left" 0 $?
done
finish
