#!/usr/bin/env bash
# A service with KV in 8 or 4 bits: processes give the bits of a single one, whoever prefills, and the KV
# of a killed shard comes back from the others and their parity.
#
# usage: tests/process/small_kv_test.sh LAMELLA WRITE_TINY_MODEL SOURCE
set -uo pipefail
. "$(dirname "$0")/tiny_service.sh"

requests="8 1500 67 250"

serve half.log "${tiny[@]}"
answers half.txt 8 40
stop "a single process, f16"

for type in q8 q4; do
  small=("${tiny[@]}" --set "kv.dtype=$type")
  serve "$type-single.log" "${small[@]}"
  answers short.txt 8 40
  answers single.txt $requests
  cmp -s half.txt short.txt
  expect "$type gives other bits than f16" 1 $?
  expect "$type: all are answered" 8 "$(grep -c logprobs single.txt)"
  stop "$type: a single process"

  serve "$type-requests.log" "${small[@]}" --set pools.attention.partition=requests --set pools.attention.members=2 \
    --set pools.attention.placement=local --set pools.prefill.placement=local
  answers requests.txt $requests
  cmp -s single.txt requests.txt
  expect "$type: whole requests per shard: the tokens of a single process" 0 $?
  expect "$type: whole requests per shard: KV was pulled" 1 $(($(metric lamella_kv_pulled_bytes_total) > 0))
  stop "$type: whole requests per shard"

  serve "$type-parity.log" --config "$source/config/parity.yaml" "${small[@]}"
  killed "$type: a shard is killed" single.txt "$requests" "$(part 'shard 1')"
  expect "$type: a shard is killed: its KV is the others' and the parity's" "1 0" "$((parity > 0)) $computed"
  expect "$type: what was checked of the parity was right" 0 "$(metric lamella_parity_mismatches_total)"
  stop "$type: with parity"
done

finish
