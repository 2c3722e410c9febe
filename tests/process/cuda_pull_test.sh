#!/usr/bin/env bash
# Prefill workers with KV of their own on CUDA devices: shards on other devices pull it.
#
# usage: tests/process/cuda_pull_test.sh LAMELLA WRITE_TINY_MODEL GPU_PART
set -uo pipefail
. "$(dirname "$0")/cuda_service.sh"

"$write" "$work/$model" $context halves
common=(--set "model.path=$work/$model" --set kv.bytes=$kv --set batching.max_batch=8
  --set batching.prefill_chunk_tokens=16 --set pools.model.threads=1 --set pools.attention.threads=1
  --set "pools.model.device=$(device 0)" --set "pools.attention.device=$(device 1)")
own=(--set pools.prefill.attention=own --set pools.attention.members=2 --set kv.prefix_cache_seconds=0)
processes=(--set pools.model.placement=local --set pools.attention.placement=local
  --set pools.prefill.placement=local --set "pools.prefill.device=$(device 0)")
limit=90 # seconds for a round; a stream that waits for another one in vain has a minute for its first works

# rounds NAME COUNT: as often the same requests, each time with the tokens of a single process, and in time.
rounds() {
  local right=0 longest=0 began took
  for _ in $(seq "$2"); do
    began=$SECONDS
    answers round.txt 3 3 1 2
    took=$((SECONDS - began))
    [ $took -le $longest ] || longest=$took
    cmp -s single.txt round.txt && right=$((right + 1))
  done
  expect "$1: $2 rounds, the tokens of a single process" "$2" "$right"
  expect "$1: no round waits (the longest took $longest s)" 1 $((longest < limit))
  expect "$1: KV was pulled in every round" 1 $(($(metric lamella_kv_pulled_bytes_total) >= $2 * 3 * 20 * 1024))
  expect "$1: no pull gave other bytes" 0 "$(metric lamella_kv_integrity_failures_total)"
}

serve single.log "${common[@]}"
answers single.txt 3 3 1 2
expect "3 answers of a single process" 3 "$(grep -c logprobs single.txt)"
stop "a single process"

serve log "${common[@]}" "${own[@]}" "${processes[@]}"
expect "the prefill worker computes on the device" "$(named 0)" \
  "$(status | json "[w['device'] for w in x['workers'] if w['role'] == 'prefill'][0]")"
rounds "S-M16 L-M28 prompts that are pulled when they are computed" 4
victim=$(pid_of prefill/0)
answers lost.txt 3 3 1 2 &
client=$!
kill -KILL "$victim"
wait "$client"
cmp -s single.txt lost.txt
expect "the prefill worker is killed: the same tokens" 0 $?
sits_again prefill/0 2
expect "the prefill worker sits again" 0 $?
stop "pulls of whole prompts"

serve log "${common[@]}" "${own[@]}" "${processes[@]}" --set pools.prefill.serialize_below_tokens=0
rounds "S-M14 layer by layer" 4
stop "pulls layer by layer"

# Two streams of prompts, and all of it on devices of one process.
serve log "${common[@]}" "${own[@]}" --set pools.prefill.members=2
rounds "in one process" 2
stop "pulls in one process"

# What the shards have still they attend to, and the replica computes the rest beside decoding.
serve log "${common[@]}" "${own[@]}" --set kv.prefix_cache_seconds=600
for round in pulled found; do
  answers $round.txt 3 3 1 2
  cmp -s single.txt $round.txt
  expect "prompts that are $round: the tokens of a single process" 0 $?
done
expect "prompts are found" 1 $(($(metric vllm:prefix_cache_hits_total) > 3 * 16))
stop "a prefix cache beside pulls"
finish
