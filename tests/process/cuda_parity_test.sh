#!/usr/bin/env bash
# Attention shards with parity on CUDA devices: the KV of one that is killed comes back from the others' memory, without
# a forward pass and with the same tokens.
#
# usage: tests/process/cuda_parity_test.sh LAMELLA WRITE_TINY_MODEL GPU_PART
set -uo pipefail
. "$(dirname "$0")/cuda_service.sh"

"$write" "$work/$model" $context halves 3
common=(--set "model.path=$work/$model" --set kv.bytes=$kv --set batching.max_batch=8
  --set batching.prefill_chunk_tokens=32 --set pools.model.threads=1 --set pools.attention.threads=1
  --set "pools.model.device=$(device 0)" --set "pools.attention.device=$(device 1)")
guarded=(--set pools.model.placement=local --set pools.attention.placement=local --set pools.attention.members=3
  --set pools.attention.parity=true --set pools.attention.spares=1)
streams=2 length=16 # an iteration takes the emulated devices a tenth of a second, on a busy machine ten times that
begun=3
[ "$real" = 0 ] || length=400 begun=60
requests="$streams $length 1 3"
# lost NAME PART: the worker with that part is killed while requests decode, and is back.
lost() {
  local seat
  seat=$(part "$2")
  killed "$1" single.txt "$requests" "$seat"
  sits_again "$seat" 2
  expect "$1: its worker is back" 0 $?
}

for type in f16 q8; do
  types=(--set kv.dtype=$type)
  [ $type = f16 ] || types+=(--set numerics.wire=bf16)
  serve single.log "${common[@]}" "${types[@]}"
  answers single.txt $streams $length 1 3
  expect "$type: answers of a single process" $streams "$(grep -c logprobs single.txt)"
  stop "$type: a single process"

  serve parity.log "${common[@]}" "${types[@]}" "${guarded[@]}"
  expect "$type: the parity is on a device" "$(named 1)" \
    "$(status | json "[w['device'] for w in x['workers'] if w['part'] == 'parity'][0]")"
  answers guarded.txt $streams $length 1 3
  cmp -s single.txt guarded.txt
  expect "$type: with parity: the tokens of a single process" 0 $?
  lost "L-M26 $type: a shard is killed" "shard 1"
  expect "L-M26 $type: a shard is killed: nothing is computed again" "1 0" "$((parity > 0)) $computed"
  if [ $type = f16 ]; then
    lost "L-M26 the parity is killed" parity
    expect "L-M26 the parity is killed: no KV was lost" "0 0" "$parity $computed"
    lost "L-M26 a shard after the parity is back" "shard 0"
    # What has no parity yet when the shard dies is computed again: both happen here.
    expect "L-M26 a shard after the parity is back: all go on" 1 $((parity + computed > 0))
  fi
  for _ in $(seq 600); do # the scrubber has been round
    checked=$(metric lamella_parity_checked_slots_total)
    [ "$checked" = 0 ] || break
    sleep 0.1
  done
  expect "A6 $type: the parity was checked on the devices" 1 $((checked > 0))
  expect "A6 $type: what was checked of the parity was right" 0 "$(metric lamella_parity_mismatches_total)"
  none_in_use "$type: with parity"
  stop "$type: with parity"
done
finish
