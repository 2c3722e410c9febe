#!/usr/bin/env bash
# A burst of prompts at a service with one prefill worker: those beyond its queue run on replicas that decode, which are
# mixed machines meanwhile and only decode afterwards (S-M03, S-M07, S-M08), in launches of their own or in those of a batch
# (S-M02); and replicas that were mixed for long change their pool (S-M09). The tokens are those of a single process.
#
# usage: tests/process/overflow_test.sh LAMELLA WRITE_TINY_MODEL SOURCE
set -uo pipefail
. "$(dirname "$0")/tiny_service.sh"

requests="24 30 67 250"
split=(--set pools.model.placement=local --set pools.model.members=2 --set pools.attention.placement=local
  --set pools.prefill.placement=local --set pools.prefill.members=1 --set kv.prefix_cache_seconds=0)

# returned: whether no replica is mixed any more, within 30 s.
returned() {
  for _ in $(seq 300); do
    [ "$(metric lamella_mixed_replicas)" != 0 ] || return 0
    sleep 0.1
  done
  return 1
}

serve single.log "${tiny[@]}"
answers single.txt $requests
expect "all are answered" 24 "$(grep -c logprobs single.txt)"
stop "a single process"

serve overflow.log "${tiny[@]}" "${split[@]}" --set pools.prefill.overflow_tokens=300 --set log.level=debug
answers overflow.txt $requests
cmp -s single.txt overflow.txt
expect "prompts that overflow: the tokens of a single process" 0 $?
over=$(metric lamella_prompts_overflowed_total)
expect "some prompts overflowed, and some did not" "1 1" "$((over > 0)) $((over < 24))"
expect "a replica became mixed" 1 $(($(grep -c 'replica takes prompts that overflow' overflow.log) > 0))
returned
expect "all replicas only decode again" 0 $?
stop "prompts that overflow"

serve waiting.log "${tiny[@]}" "${split[@]}" --set pools.prefill.overflow_tokens=0
answers waiting.txt $requests
cmp -s single.txt waiting.txt
expect "prompts that wait: the tokens of a single process" 0 $?
expect "none overflowed" 0 "$(metric lamella_prompts_overflowed_total)"
stop "prompts that wait"

serve mixed.log --config "$source/config/splitwise.yaml" "${tiny[@]}" --set kv.prefix_cache_seconds=0 \
  --set pools.prefill.overflow_tokens=300
answers mixed.txt $requests
cmp -s single.txt mixed.txt
expect "two machines for prompts, two for tokens, mixed launches: the tokens of a single process" 0 $?
expect "prompts overflowed into launches of batches" 1 $(($(metric lamella_prompts_overflowed_total) > 0))
returned
expect "all replicas only decode again" 0 $?
stop "mixed launches"

serve pools.log --config "$source/config/splitwise.yaml" "${tiny[@]}" --set kv.prefix_cache_seconds=0 \
  --set pools.prefill.overflow_tokens=300 --set pools.prefill.repurpose_seconds=0.001
answers pools.txt $requests
cmp -s single.txt pools.txt
expect "replicas that change their pool: the tokens of a single process" 0 $?
expect "a replica changed its pool" 1 $(($(grep -c 'replica changes its pool' pools.log) > 0))
stop "replicas that change their pool"

serve both.log --config "$source/config/splitwise.yaml" "${tiny[@]}" --set pools.prefill.attention=shards \
  --set pools.prefill.overflow_tokens=300 --set batching.max_batch=4 --set log.level=debug
answers both.txt $requests
cmp -s single.txt both.txt
expect "prefill seats that decode in a burst: the tokens of a single process" 0 $?
expect "a prefill seat decoded" 1 $(($(grep -c 'replica for prompts takes sequences that overflow' both.log) > 0))
returned
expect "all machines have their own work again" 0 $?
stop "prefill seats that decode"

finish
