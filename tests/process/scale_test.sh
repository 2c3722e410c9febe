#!/usr/bin/env bash
# Pools change their sizes while streams go on: the walk "Scale it" of docs/operations.md as it is printed there, changes
# that are refused, workers of other processes that come, go and are told to stop, and random changes under load.
#
# usage: tests/process/scale_test.sh LAMELLA WRITE_TINY_MODEL SOURCE
set -uo pipefail
. "$(dirname "$0")/tiny_service.sh"
here=$source/tests/process

serve single.log "${tiny[@]}"
answers golden.txt 8 1000
stop "a single process"
expect "eight answers of a single process" 8 "$(grep -c logprobs golden.txt)"

same() { # same NAME FILE
  cmp -s golden.txt "$2"
  expect "$1: the same tokens" 0 $?
}
# change POOL: the newest change, as "from -> to state".
change() {
  curl -s --noproxy '*' "http://127.0.0.1:$admin/admin/pools" \
    | json "[f\"{p['from']} -> {p['members']} {p['state']}\" for p in x['pools'] if p['pool'] == '$1'][0]"
}
# becomes POOL TEXT: its newest change does.
becomes() {
  for _ in $(seq 1200); do
    [ "$(change "$1")" != "$2" ] || break
    sleep 0.1
  done
  expect "$1 becomes $2" "$2" "$(change "$1")"
}

# The walk: its configuration and its commands, with ports and a model of this test.
page=$source/docs/operations.md
# blocks LANGUAGE: the examples of the section in it.
blocks() {
  sed -n '/^## Scale it/,/^## [^S]/p' "$page" \
    | awk -v first="\`\`\`$1" '/^```/ { inside = !inside && $0 == first; fence = !fence; if (!fence) inside = 0; next } inside'
}
api=$(free_port)
admin=$(free_port)
blocks yaml \
  | sed "s/127.0.0.1:8000/127.0.0.1:$api/; s/127.0.0.1:8001/127.0.0.1:$admin/; s/256MiB/32MiB/" >lamella.yaml
echo "model: {path: $work/$model}" >>lamella.yaml
grep -q 'attention: {members: 1, placement: local' lamella.yaml
expect "the walk has its configuration" 0 $?
walk=$(blocks "" | sed 's/ *#.*//')
for words in 'lamella serve --config lamella.yaml &' 'kill -HUP %1' 'lamella scale attention=3' 'lamella drain attention-1'; do
  contains "the walk says: $words" "$words" "$walk"
done
"$lamella" serve --config lamella.yaml "${patient[@]}" 2>log &
server=$!
port=$api
client_of() { "$lamella" "$@" --admin "127.0.0.1:$admin"; }
client_of status --wait 60 >page
expect "the walk: the service is ready" 0 $?
decoding during.txt 8 1000
eval "$(grep '^sed -i' <<<"$walk")"
kill -HUP "$server"
becomes attention "1 -> 3 done"
wait "$client"
same "the walk: 1 -> 3 by its file" during.txt
contains "the walk: pools" "attention  3        32 MiB   done" "$(client_of pools)"
decoding during.txt 8 1000
client_of scale attention=1 >page
expect "the walk: scale 3 -> 1 succeeds" 0 $?
wait "$client"
same "the walk: 3 -> 1 by hand" during.txt
decoding during.txt 8 1000
client_of scale attention=3 >page
expect "the walk: scale 1 -> 3 succeeds" 0 $?
wait "$client"
same "the walk: 1 -> 3 by hand" during.txt
client_of scale model=2 >page
decoding during.txt 8 1000
client_of drain model-1 >page
expect "the walk: a replica is drained" 0 $?
wait "$client"
same "the walk: a replica is drained" during.txt

# Other memory for each shard, by the file and by hand, while streams go on.
slots() { status | json "x['pools'][0]['slots']['total']"; }
had=$(slots)
decoding during.txt 8 1000
sed -i 's/bytes: 32MiB/bytes: 48MiB/' lamella.yaml
contains "a reload with other memory: kv.bytes is pending" '"pending":["kv.bytes"]' \
  "$(curl -s --noproxy '*' -X POST "http://127.0.0.1:$admin/admin/reload")"
for _ in $(seq 600); do
  case $(client_of pools) in *"48 MiB "*" done"*) break ;; esac
  sleep 0.1
done
wait "$client"
same "other memory by the file" during.txt
more=$(($(slots) - had * 3 / 2))
expect "48 MiB have room for half as many tokens more as 32 MiB" 1 $((more == 0 || more == 1))
decoding during.txt 8 1000
client_of scale attention=1 --kv-bytes 96MiB >page
expect "other memory and another size in one change" 0 $?
wait "$client"
same "other memory by hand" during.txt
expect "one shard with all heads and three times the memory" "$had" "$(slots)"
client_of scale attention=3 --kv-bytes 32MiB >page
expect "and back" 0 $?
expect "the slots of before" "$had" "$(slots)"
for asked in 'model=2 --kv-bytes 64MiB' 'attention=3 --kv-bytes 64TiB' 'attention=3 --kv-bytes much'; do
  # shellcheck disable=SC2086
  client_of scale $asked >page 2>&1
  expect "scale $asked is refused" 1 $(($? != 0))
done
# Memory that is not configured any more stays what it was, by one change.
taken_over() { grep -c '"msg":"epoch taken over' log; }
sed -i 's/bytes: 48MiB/bytes: auto/' lamella.yaml
takeovers=$(taken_over)
contains "a reload without kv.bytes is pending" '"pending":["kv.bytes"]' \
  "$(curl -s --noproxy '*' -X POST "http://127.0.0.1:$admin/admin/reload")"
becomes attention "3 -> 3 done"
sed -i 's/bytes: auto/bytes: 32MiB/' lamella.yaml
for _ in $(seq 100); do # the reload before looks twice a second whether its change is done
  curl -s --noproxy '*' -X POST "http://127.0.0.1:$admin/admin/reload" >page
  grep -q "still under way" page || break
  sleep 0.1
done
contains "a reload with what there was is pending" '"pending":["kv.bytes"]' "$(cat page)"
becomes attention "3 -> 3 done"
expect "by one epoch each" $((takeovers + 2)) "$(taken_over)"

# What cannot be, and changes nothing.
before=$(client_of pools)
for asked in attention=2 attention=0 attention=300 model=-1 disks=2 attention; do
  client_of scale "$asked" >page 2>&1
  expect "scale $asked is refused" 1 $(($? != 0))
done
contains "a size that does not divide the heads: the reason" "divisor" "$(client_of scale attention=2 2>&1)"
sed -i 's/attention: {members: 3/attention: {members: 2/; s/model: {members: 1/model: {members: 2/' lamella.yaml
code=$(curl -s --noproxy '*' -o reply -w '%{http_code}' -X POST "http://127.0.0.1:$admin/admin/reload")
expect "a reload with one size that cannot be is refused" 400 "$code"
contains "and says why" "divisor" "$(cat reply)"
expect "nothing has changed" "$before" "$(client_of pools)"
client_of drain nobody >page 2>&1
expect "nobody is drained by a wrong name" 1 $?

# Random changes under load, and a kill of whoever is there while one is under way.
python3 "$here/scaling.py" "$port" "$admin" --events "${EVENTS:-12}" --seed "${LAMELLA_SEED:-7}" --model 1,2,3 >page
code=$?
expect "random changes cost no answer" 0 $code
cat page
decoding during.txt 8 1000
client_of scale attention=1 --no-wait >page
kill -KILL "$(pid_of attention/0)"
wait "$client"
same "a shard is killed while its pool is changed" during.txt
for _ in $(seq 600); do
  case $(change attention) in *"under way" | *short) sleep 0.1 ;; *) break ;; esac
done
client_of scale attention=1 >page
expect "and then the pool has that size" 0 $?
none_in_use "afterwards"
pids=$(children)
stop "the walk"
gone $pids
expect "no worker process is left" 0 $?

# Pools that follow the load: more sequences than one shard has KV for, and then none.
# How far it may follow it is told while it serves.
printf 'version: 1\npools: {attention: {max: 1}}\n' >bounds.yaml
serve scaled.log --config bounds.yaml "${tiny[@]}" --set pools.model.placement=local --set pools.model.members=1 \
  --set pools.attention.placement=local --set pools.attention.members=1 \
  --set pools.attention.kv_bytes=2MiB --set autoscale.cool_down_up_seconds=1 --set autoscale.cool_down_down_seconds=1 \
  --set autoscale.trace_file=looks.jsonl
answers quiet.txt 12 3000
expect "a pool whose max is its size does not grow" "1 -> 1 none" "$(change attention)"
sed -i 's/max: 1/max: 3/' bounds.yaml
contains "a larger max by a reload" '"applied":["pools.attention.max"]' \
  "$(curl -s --noproxy '*' -X POST "http://127.0.0.1:$admin/admin/reload")"
for _ in $(seq 200); do # the load stays until the pool has followed it, however fast this machine is
  answers busy.txt 12 3000
  case $(change attention) in "1 -> 3 "*) break ;; esac
done
becomes attention "1 -> 3 done"
cmp -s quiet.txt busy.txt
expect "a pool follows its load: the same tokens" 0 $?
becomes attention "3 -> 1 done"
none_in_use "a pool follows its load"
stop "a pool follows its load"
"$lamella" simulate --scaling-trace looks.jsonl >replayed
grep -o 'autoscaling pool=[a-z]* from=[0-9]* to=[0-9]*' scaled.log | sed 's/.*pool=//; s/ from=/ /; s/ to=/ -> /' >live
sed -n 's/^step.* s  \([a-z]*\) \([0-9]*\) to \([0-9]*\):.*/\1 \2 -> \3/p' replayed >simulated
expect "the simulator decides the same from what the service saw" "$(cat live)" "$(cat simulated)"

# Workers that others start: one that is told to stop is drained, one that comes finds a seat.
printf '%s' "$(head -c 48 /dev/urandom | base64 -w0)" >secret
chmod 400 secret
door=$(free_port)
worker() { # worker ROLE NAME
  "$lamella" worker --role "$1" --name "$2" --join "127.0.0.1:$door" --secret-file secret --dead-seconds 20 2>>"$2.log" &
  workers+=($!)
  newest=$!
}
serving() { # serving NAME COUNT: that many workers of the name have a part
  for _ in $(seq 600); do
    now=$(status | json "len([w for w in x['workers'] if w['state'] == 'live' and w['part'] not in ('', 'spare') and w['name'].startswith('$1')])")
    [ "$now" != "$2" ] || return 0
    sleep 0.1
  done
  return 1
}
worker model m0
worker attention a0
a0=$newest
worker attention a1
serve remote.log "${tiny[@]}" --set pools.model.placement=remote --set pools.attention.placement=remote \
  --set pools.model.members=1 --set pools.attention.members=2 --set pools.attention.partition=requests \
  --set "control.listen=127.0.0.1:$door" \
  --set control.secret_file=secret
decoding during.txt 8 1000
kill -TERM "$a0"
wait "$a0"
expect "a shard of another host is told to stop: it ends with 0" 0 $?
contains "it was drained first" "draining seat=" "$(cat a0.log)"
wait "$client"
same "a shard of another host is told to stop" during.txt
expect "nothing was lost" 0 "$(metric lamella_failovers_total)"
expect "nothing was recomputed" 0 "$(recovered recompute)"
becomes attention "2 -> 1 done"
decoding during.txt 8 1000
worker attention a2
serving a 2
expect "one that is started in its place has a part" 0 $?
wait "$client"
same "and comes without a pause" during.txt
none_in_use "other hosts"
stop "other hosts"
finish
