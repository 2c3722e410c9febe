#!/usr/bin/env bash
# Attention shards with parity: the KV of one that is killed comes back from the others, without a
# forward pass and with the same tokens; what cannot come back is computed again.
#
# usage: tests/process/parity_test.sh LAMELLA WRITE_TINY_MODEL SOURCE
set -uo pipefail
. "$(dirname "$0")/tiny_service.sh"

# Answers so long that there is time to kill somebody between two of their tokens.
requests="24 1000"

serve single.log "${tiny[@]}"
answers single.txt $requests
answers long.txt 24 3000
stop "a single process"

serve log --config "$source/config/parity.yaml" "${tiny[@]}"
expect "three shards, their parity and a spare" "attention/0 attention/1 attention/2 attention/3 attention/4" \
  "$(status | json '" ".join(sorted(w["seat"] for w in x["workers"] if w["role"] == "attention"))')"
# Parts go to the seats in the order in which their workers join.
expect "L-M26 status says which seat holds the parity" "$(part parity) parity" \
  "$("$lamella" status --admin "127.0.0.1:$admin" | awk '$2 == "attention" && $4 == "parity" { print $3, $4 }')"
answers guarded.txt $requests
cmp -s single.txt guarded.txt
expect "with parity: the tokens of a single process" 0 $?

killed "L-M26 a shard is killed" single.txt "$requests" "$(part 'shard 1')"
expect "L-M26 a shard is killed: nothing is computed again" "1 0" "$((parity >= 20)) $computed"
# The part is the spare's now, and who is started again is the spare.
killed "L-M26 the next one is killed" single.txt "$requests" "$(part 'shard 1')"
expect "L-M26 the next one is killed: nothing is computed again" "1 0" "$((parity >= 20)) $computed"
killed "L-M26 the parity is killed" single.txt "$requests" "$(part parity)"
expect "L-M26 the parity is killed: no KV was lost" "0 0" "$parity $computed"
# whole: 1 where all slots in use have their parity.
whole() { status | json "int(any(p['slots']['parity'] == p['slots']['used'] > 0 for p in x['pools']))"; }

# Requests decode, the parity is killed and made again beside them; then a shard is killed, too.
made() { metric lamella_parity_rebuilt_slots_total; }
before=$(made)
before_parity=$(recovered parity)
before_computed=$(recovered recompute)
decoding again.txt 24 3000
kill -KILL "$(pid_of "$(part parity)")"
for _ in $(seq 400); do # from the loss on, until all that is in use has its parity again
  [ "$(made)" = "$before" ] || [ "$(whole)" = 0 ] || break
done
expect "L-M26 the parity is made again beside decoding" 1 \
  $(($(made) > before && $(status | json 'x["requests"]["running"]') >= 20))
kill -KILL "$(pid_of "$(part 'shard 1')")"
wait "$client"
cmp -s long.txt again.txt
expect "L-M26 the parity and then a shard are killed: the same tokens" 0 $?
expect "L-M26 the parity and then a shard are killed: nothing is computed again" "1 0" \
  "$(($(recovered parity) - before_parity >= 20)) $(($(recovered recompute) - before_computed))"
expect "L-M26 what was checked of the parity was right" 0 "$(metric lamella_parity_mismatches_total)"
for seat in attention/0 attention/1 attention/2 attention/3 attention/4; do sits_again "$seat" 1; done

killed "L-M26 a shard after the parity is back" single.txt "$requests" "$(part 'shard 0')"
expect "L-M26 a shard after the parity is back: nothing is computed again" "1 0" \
  "$((parity >= 20)) $computed"
for _ in $(seq 1200); do # the epoch with everybody in it
  ready=$(curl -s "http://127.0.0.1:$port/ready" | json 'x["status"]')
  [ "$ready" != ok ] || break
  sleep 0.1
done
# The pool has one parity: two lost shards at once are one too many.
killed "L-M26 two shards are killed at once" single.txt "$requests" "$(part 'shard 0')" "$(part 'shard 1')"
expect "L-M26 two shards are killed at once: KV is computed again" 1 $((computed >= 20))
killed "L-M26 and one after that" single.txt "$requests" "$(part 'shard 2')"
none_in_use "with parity"
expect "with parity: the allocator counts its slots" 1 \
  "$(curl -s "http://127.0.0.1:$admin/metrics" | grep -c '^lamella_kv_slots{.*state="parity".*worker="attention-3"')"
stop "with parity"

finish
