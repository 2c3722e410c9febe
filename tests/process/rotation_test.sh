#!/usr/bin/env bash
# Batches that rotate over replicas in processes of their own: the tokens of a single process, also where replicas and
# shards are killed, and where the pool of replicas changes its size.
#
# usage: tests/process/rotation_test.sh LAMELLA WRITE_TINY_MODEL SOURCE
set -uo pipefail
. "$(dirname "$0")/tiny_service.sh"

requests="24 1000"

serve single.log "${tiny[@]}"
answers single.txt $requests
stop "a single process"

# Bytes from one replica to another, as status tells them.
migrated() { status | json 'sum(p["bytes"] for w in x["workers"] if w["role"] == "model" for p in w["peers"] if p["seat"].startswith("model/"))'; }

serve log --config "$source/config/rotational.yaml" "${tiny[@]}" --set batching.max_batch=8
answers turning.txt $requests
cmp -s single.txt turning.txt
expect "L-M17 three batches on two replicas: the tokens of a single process" 0 $?
expect "L-M21 contexts have migrated" 1 "$(($(migrated) > 0))"

killed "L-M17 L-M25 a replica is killed" single.txt "$requests" "$(part 'replica 1')"
expect "L-M17 L-M25 a replica is killed: nothing is computed again" "0 0" "$parity $computed"
killed "L-M17 L-M26 a shard is killed" single.txt "$requests" "$(part 'shard 1')"
expect "L-M17 L-M26 a shard is killed: its KV is computed again" 1 $((computed >= 20))

decoding three.txt $requests
"$lamella" scale model=3 --admin "127.0.0.1:$admin" >page
expect "L-M17 L-M03 a third replica joins" 0 $?
wait "$client"
cmp -s single.txt three.txt
expect "L-M17 L-M03 a third replica joins: the same tokens" 0 $?
expect "L-M17 L-M03 it has a part" 1 "$(status | json 'int(any(w["part"] == "replica 2" for w in x["workers"]))')"
none_in_use "rotation"
stop "rotation"

finish
