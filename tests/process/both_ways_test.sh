#!/usr/bin/env bash
# Prefill workers with KV of their own are machines of Splitwise in both directions: while the batches of all replicas are
# full, sequences decode on them (S-M03, S-M07), until these are done (S-M08) or they change their pool (S-M09). One is
# killed meanwhile, and their number changes. The tokens are those of a single process.
#
# usage: tests/process/both_ways_test.sh LAMELLA WRITE_TINY_MODEL SOURCE
set -uo pipefail
. "$(dirname "$0")/tiny_service.sh"

burst="16 160 67 250"
machines=(--config "$source/config/splitwise.yaml" "${tiny[@]}" --set kv.prefix_cache_seconds=0
  --set batching.max_batch=2 --set log.level=debug)

# same NAME FILE
same() {
  cmp -s single.txt "$2"
  expect "$1: the tokens of a single process" 0 $?
}
# returned: whether no machine is mixed any more, within 30 s.
returned() {
  for _ in $(seq 300); do
    [ "$(metric lamella_mixed_replicas)" != 0 ] || return 0
    sleep 0.1
  done
  return 1
}

serve single.log "${tiny[@]}"
answers single.txt $burst
expect "all are answered" 16 "$(grep -c logprobs single.txt)"
stop "a single process"

serve both.log "${machines[@]}"
answers both.txt $burst
same "a burst" both.txt
expect "sequences decoded on prefill workers" 1 $(($(metric lamella_sequences_overflowed_total) > 0))
expect "and KV of prompts was pulled from them" 1 $(($(metric lamella_kv_pulled_bytes_total) > 0))
returned
expect "all machines have their own work again" 0 $?

before=$(metric lamella_sequences_overflowed_total)
killed "a prefill worker that decodes is killed" single.txt "$burst" prefill/0
expect "it decoded" 1 $(($(metric lamella_sequences_overflowed_total) > before))
expect "no KV of its sequences was computed again" 0 "$computed"

decoding scaled.txt $burst
"$lamella" scale --admin "127.0.0.1:$admin" prefill=1 >page
expect "one prefill worker less meanwhile" 0 $?
wait "$client"
same "one prefill worker less" scaled.txt
decoding scaled.txt $burst
"$lamella" scale --admin "127.0.0.1:$admin" prefill=3 >page
expect "two more meanwhile" 0 $?
wait "$client"
same "two prefill workers more" scaled.txt
none_in_use "after all that"
stop "prefill workers that decode in a burst"

serve pools.log "${machines[@]}" --set pools.prefill.repurpose_seconds=0.001
answers pools.txt $burst
same "machines that change their pool" pools.txt
expect "a prefill worker changed its pool" 1 $(($(grep -c 'replica changes its pool.* pool="\?token' pools.log) > 0))
stop "machines that change their pool"

serve apart.log "${machines[@]}" --set pools.prefill.overflow_tokens=0
answers apart.txt $burst
same "prompts that wait for prefill workers" apart.txt
expect "and nothing decodes there" 0 "$(metric lamella_sequences_overflowed_total)"
stop "prompts that wait for prefill workers"

finish
