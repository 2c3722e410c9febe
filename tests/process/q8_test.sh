#!/usr/bin/env bash
# A service with KV in 8 bits: processes give the bits of a single one, whoever prefills, and the KV
# of a killed shard comes back from the others and their parity.
#
# usage: tests/process/q8_test.sh LAMELLA WRITE_TINY_MODEL SOURCE
set -uo pipefail
own_model=tiny.gguf
[ $# = 3 ] || { sed -n '2,/^set/p' "$0" | grep '^#' >&2; exit 2; }
write=$2
. "$(dirname "$0")/service.sh" 2 "$1" "$3"

"$write" "$work/$model" 4096
common=(--set "model.path=$work/$model" --set kv.bytes=32MiB --set pools.model.threads=1 --set pools.attention.threads=1)
length=1500
recovered() { metric lamella_requests_recovered_total "method=\"$1\""; }

serve half.log "${common[@]}"
answers half.txt 8 40
stop "a single process, f16"
common+=(--set kv.dtype=q8)
serve single.log "${common[@]}"
answers short.txt 8 40
answers single.txt 8 "$length" 67 250
cmp -s half.txt short.txt
expect "8 bits give other bits than 16" 1 $?
expect "all are answered" 8 "$(grep -c logprobs single.txt)"
stop "a single process"

serve requests.log "${common[@]}" --set pools.attention.partition=requests --set pools.attention.members=2 \
  --set pools.attention.placement=local --set pools.prefill.placement=local
answers requests.txt 8 "$length" 67 250
cmp -s single.txt requests.txt
expect "whole requests per shard: the tokens of a single process" 0 $?
expect "whole requests per shard: KV was pulled" 1 $(($(metric lamella_kv_pulled_bytes_total) > 0))
stop "whole requests per shard"

serve parity.log --config "$source/config/parity.yaml" "${common[@]}"
tokens=$(metric vllm:generation_tokens_total)
answers parity.txt 8 "$length" 67 250 &
client=$!
for _ in $(seq 1000); do # all of them have tokens, none has all of its tokens
  decoded=$(($(metric vllm:generation_tokens_total) - tokens))
  [ "$decoded" -lt $((8 * 24)) ] || break
done
kill -KILL "$(pid_of attention/1)"
wait "$client"
expect "a shard is killed while requests decode" 1 $((decoded >= 8 * 24 && decoded < 8 * (length - 6)))
cmp -s single.txt parity.txt
expect "a shard is killed: the tokens of a single process" 0 $?
expect "a shard is killed: its KV is the others' and the parity's" "1 0" \
  "$(($(recovered parity) > 0)) $(recovered recompute)"
expect "what was checked of the parity was right" 0 "$(metric lamella_parity_mismatches_total)"
stop "with parity"

finish
