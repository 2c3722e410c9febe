#!/usr/bin/env bash
# Attention shards with parity: the KV of one that is killed comes back from the others, without a
# forward pass and with the same tokens; what cannot come back is computed again.
#
# usage: tests/process/parity_test.sh LAMELLA SOURCE   (exit code 77: skipped, no default model)
set -uo pipefail
. "$(dirname "$0")/service.sh" 2 "$@"

length=160 # tokens of an answer: so many that there is time to kill somebody between two of them

recovered() { metric lamella_requests_recovered_total "method=\"$1\""; }

# killed NAME SEATS...: 24 requests decode; those are killed at once. The tokens are those of a single
# process; `parity` and `computed` say by which way the requests went on.
killed() {
  local name=$1 victims=() before_parity before_computed tokens decoded=0
  shift
  for seat in "$@"; do victims+=("$(pid_of "$seat")"); done
  before_parity=$(recovered parity)
  before_computed=$(recovered recompute)
  tokens=$(metric vllm:generation_tokens_total)
  answers killed.txt 24 "$length" &
  local client=$!
  for _ in $(seq 400); do # all of them have tokens, none has all of its tokens
    decoded=$(($(metric vllm:generation_tokens_total) - tokens))
    [ "$decoded" -lt $((24 * 24)) ] || break
  done
  kill -KILL "${victims[@]}"
  wait "$client"
  expect "$name: while requests decode" 1 $((decoded >= 24 * 24 && decoded < 24 * (length - 6)))
  cmp -s single.txt killed.txt
  expect "$name: the same tokens" 0 $?
  parity=$(($(recovered parity) - before_parity))
  computed=$(($(recovered recompute) - before_computed))
  for seat in "$@"; do
    sits_again "$seat" 1
    expect "$name: somebody sits in $seat again" 0 $?
  done
}

serve single.log
answers single.txt 24 "$length"
answers long.txt 24 300
stop "a single process"

serve log --config "$source/config/parity.yaml"
expect "three shards, their parity and a spare" "attention/0 attention/1 attention/2 attention/3 attention/4" \
  "$(status | json '" ".join(sorted(w["seat"] for w in x["workers"] if w["role"] == "attention"))')"
expect "L-M26 status says which seat holds the parity" "attention/3 parity" \
  "$("$lamella" status --admin "127.0.0.1:$admin" | awk '$2 == "attention" && $4 == "parity" { print $3, $4 }')"
answers guarded.txt 24 "$length"
cmp -s single.txt guarded.txt
expect "with parity: the tokens of a single process" 0 $?

killed "L-M26 a shard is killed" attention/1
expect "L-M26 a shard is killed: nothing is computed again" "1 0" "$((parity >= 20)) $computed"
# The part is the spare's now, and attention/1 is the spare.
killed "L-M26 the next one is killed" attention/4
expect "L-M26 the next one is killed: nothing is computed again" "1 0" "$((parity >= 20)) $computed"
killed "L-M26 the parity is killed" attention/3
expect "L-M26 the parity is killed: no KV was lost" "0 0" "$parity $computed"
# part PART: the seat that has it. whole: 1 where all slots in use have their parity.
part() { status | json "[w['seat'] for w in x['workers'] if w['part'] == '$1'][0]"; }
whole() { status | json "int(any(p['slots']['parity'] == p['slots']['used'] > 0 for p in x['pools']))"; }

# Requests decode, the parity is killed and made again beside them; then a shard is killed, too.
made() { metric lamella_parity_rebuilt_slots_total; }
before=$(made)
before_parity=$(recovered parity)
before_computed=$(recovered recompute)
tokens=$(metric vllm:generation_tokens_total)
answers again.txt 24 300 &
client=$!
for _ in $(seq 400); do
  [ $(($(metric vllm:generation_tokens_total) - tokens)) -lt $((24 * 24)) ] || break
done
kill -KILL "$(pid_of "$(part parity)")"
for _ in $(seq 400); do # from the loss on, until all that is in use has its parity again
  [ "$(made)" = "$before" ] || [ "$(whole)" = 0 ] || break
done
expect "L-M26 the parity is made again beside decoding" 1 \
  $(($(made) > before && $(metric vllm:generation_tokens_total) - tokens < 24 * 290))
kill -KILL "$(pid_of "$(part 'shard 1')")"
wait "$client"
cmp -s long.txt again.txt
expect "L-M26 the parity and then a shard are killed: the same tokens" 0 $?
expect "L-M26 the parity and then a shard are killed: nothing is computed again" "1 0" \
  "$(($(recovered parity) - before_parity >= 20)) $(($(recovered recompute) - before_computed))"
expect "L-M26 what was checked of the parity was right" 0 "$(metric lamella_parity_mismatches_total)"
for seat in attention/0 attention/1 attention/2 attention/3 attention/4; do sits_again "$seat" 1; done

killed "L-M26 a shard after the parity is back" "$(part 'shard 0')"
expect "L-M26 a shard after the parity is back: nothing is computed again" "1 0" \
  "$((parity >= 20)) $computed"
for _ in $(seq 1200); do # the epoch with everybody in it
  ready=$(curl -s "http://127.0.0.1:$port/ready" | json 'x["status"]')
  [ "$ready" != ok ] || break
  sleep 0.1
done
# The pool has one parity: two lost shards at once are one too many.
killed "L-M26 two shards are killed at once" "$(part 'shard 0')" "$(part 'shard 1')"
expect "L-M26 two shards are killed at once: KV is computed again" 1 $((computed >= 20))
killed "L-M26 and one after that" "$(part 'shard 2')"
none_in_use "with parity"
expect "with parity: the allocator counts its slots" 1 \
  "$(curl -s "http://127.0.0.1:$admin/metrics" | grep -c '^lamella_kv_slots{.*state="parity".*worker="attention-3"')"
stop "with parity"

finish
