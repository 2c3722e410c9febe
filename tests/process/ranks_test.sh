#!/usr/bin/env bash
# Replicas of several ranks in worker processes: the tokens of a single process with as many ranks, whoever is killed,
# and whether batches stay on their replicas or rotate.
#
# usage: tests/process/ranks_test.sh LAMELLA WRITE_TINY_MODEL SOURCE
set -uo pipefail
. "$(dirname "$0")/tiny_service.sh"

"$write" "$work/$model" 4096 halves 3 # all of it can be shared by three
requests="8 1500 67 250"
tiny+=(--set pools.model.tensor_parallel=3)
processes=(--set pools.model.placement=local --set pools.attention.placement=local)

serve single.log "${tiny[@]}"
answers single.txt $requests
expect "all are answered" 8 "$(grep -c logprobs single.txt)"
stop "a single process"

serve processes.log "${tiny[@]}" "${processes[@]}" --set pools.model.members=2 --set pools.attention.members=3 \
  --set pools.prefill.placement=local
killed "L-M03 a replica is killed" single.txt "$requests" model/0
killed "L-M03 a shard is killed" single.txt "$requests" attention/1
expect "L-M03 prompts are attended to by the shards" 0 "$(metric lamella_kv_pulled_bytes_total)"
expect "L-M03 each replica has its ranks" "0 1 2" \
  "$(sed -n 's/.*weights loaded .* rank=\([0-9]\) of=3 .*/\1/p' processes.log | sort -u | tr '\n' ' ' | sed 's/ $//')"
stop "processes"

serve requests.log "${tiny[@]}" --set pools.attention.placement=local --set pools.attention.members=2 \
  --set pools.attention.partition=requests --set net.transport=tcp
answers requests.txt $requests
cmp -s single.txt requests.txt
expect "L-M03 a replica of the control process: the tokens of a single process" 0 $?
stop "a replica of the control process"

serve parity.log --config "$source/config/parity.yaml" "${tiny[@]}"
killed "L-M03 L-M26 a shard with parity is killed" single.txt "$requests" "$(part 'shard 1')"
expect "L-M03 L-M26 its KV is the others' and the parity's" "1 0" "$((parity > 0)) $computed"
stop "with parity"

serve rotation.log --config "$source/config/rotational.yaml" "${tiny[@]}" --set batching.max_batch=8
answers rotation.txt $requests
cmp -s single.txt rotation.txt
expect "L-M03 L-M17 batches rotate over replicas of ranks: the tokens of a single process" 0 $?
killed "L-M03 L-M17 a replica of the rotation is killed" single.txt "$requests" "$(part 'replica 1')"
killed "L-M03 L-M17 a shard of the rotation is killed" single.txt "$requests" "$(part 'shard 2')"
expect "L-M03 L-M17 it still rotates" True "$(status | json 'x["pipeline"]["rotates"]')"
stop "the rotation"

finish
