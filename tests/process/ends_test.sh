#!/usr/bin/env bash
# A process that can serve no longer ends by itself, with an exit code that says so, within ten
# seconds; one that can go on does. Workers without their service, a service whose workers cannot be
# started, a service that was stopped, a log that takes no more lines.
#
# usage: tests/process/ends_test.sh LAMELLA SOURCE   (exit code 77: skipped, no default model)
set -uo pipefail
here=$(cd "$(dirname "$0")" && pwd)
. "$here/service.sh" 2 "$@"

now_ms() { date +%s%3N; }
# runs PID: it has not ended; a child that was not waited for yet has.
runs() { grep -qs ') [^ZX] ' "/proc/$1/stat" || return 1; }
# ends NAME CODE BEGAN PID: it ends with that code, and a line says after how long. The promise is ten
# seconds; a machine that runs tests is given five times that.
ends() {
  local code took
  while runs "$4" && [ $(($(now_ms) - $3)) -lt 50000 ]; do sleep 0.05; done
  took=${5:-$(($(now_ms) - $3))}
  runs "$4"
  expect "$1: it ends within five times ten seconds" 1 $?
  runs "$4" && kill -KILL "$4"
  wait "$4"
  code=$?
  echo "ended $1: after $took ms with $code"
  expect "$1: exit code" "$2" "$code"
}
asks() {
  curl -sS -o reply -w '%{http_code}' --max-time 300 -H 'content-type: application/json' \
    -d '{"model":"SmolLM2-135M-Instruct.Q4_1","prompt":"x","max_tokens":3}' "http://127.0.0.1:$port/v1/completions"
}

# Workers of another host (as they are to the service): the one that is silent is missed in time.
openssl rand -hex 32 >secret
chmod 0400 secret
join=127.0.0.1:$(free_port)
for role in model attention; do
  "$lamella" worker --role "$role" --join "$join" --secret-file secret 2>"worker-$role.log" &
  workers+=($!)
done
serve remote.log --set control.dead_seconds=1 --set control.listen="$join" --set control.secret_file=secret \
  --set pools.model.placement=remote --set pools.attention.placement=remote \
  --set pools.model.threads=1 --set pools.attention.threads=1
for role in model attention; do
  python3 "$here/ready_watch.py" "$port" STOP "$(pid_of $role/0)" continue >watch.json
  of() { json "$1" <watch.json; }
  echo "told A2 $role worker of another host, STOP: $(of 'x["told_ms"]') ms; ok again after $(of 'x["back_ms"]') ms"
  expect "A2 $role worker of another host, STOP: what is told" "503 unavailable" "$(of 'x["told"]')"
  expect "A2 $role worker of another host, STOP: within five times 1100 ms" True \
    "$(of 'x["told_ms"] is not None and x["told_ms"] - x["stood_ms"] <= 5500')"
  expect "A2 $role worker of another host, STOP: it wakes up and joins again" True "$(of 'x["back_ms"] is not None')"
done

# The service is killed: the workers look for it for a while, and end. Meanwhile the next part runs.
orphaned=$(now_ms)
kill -KILL "$server"
wait "$server" 2>/dev/null
server=
for i in 0 1; do
  (while runs "${workers[$i]}"; do sleep 0.05; done; now_ms >"orphan-$i.end") &
done

# Child processes that fail before the service has ever served: nothing can come of it. (What happens to one that has
# served: seats_test.sh.)
began=$(now_ms)
"$lamella" serve --listen 127.0.0.1:0 --set admin.listen=127.0.0.1:0 --config "$source/config/one-node.yaml" \
  --failpoint worker.epoch_open=1:crash 2>local.log &
server=$!
for _ in $(seq 600); do
  pids=$(children 2>/dev/null)
  [ -z "$pids" ] || break
  sleep 0.05
done
ends "A8 no worker can be started" 70 "$began" "$server"
server=
contains "A8 no worker can be started: it says why" 'the service cannot serve reason=' "$(cat local.log)"
contains "A8 no worker can be started: and which" 'signal 11' "$(grep 'the service cannot serve' local.log)"
gone $pids
expect "A8 no worker can be started: none is left" 0 $?

# The service is stopped until its workers give it up, and goes on: they join again.
serve stopped.log --set control.dead_seconds=1 --config "$source/config/one-node.yaml"
kill -STOP "$server"
for _ in $(seq 3000); do
  [ "$(grep -c 'control process lost' stopped.log)" -lt 2 ] || break
  sleep 0.1
done
expect "A2 gateway, STOP: both workers give it up" 2 "$(grep -c 'control process lost' stopped.log)"
kill -CONT "$server"
for _ in $(seq 3000); do # until they are back, 503 tells to try again
  code=$(asks)
  [ "$code" = 503 ] || break
  sleep 0.1
done
expect "A2 gateway, STOP: it answers again" 200 "$code"
stop "A2 gateway, STOP"

for i in 0 1; do
  while runs "${workers[$i]}" && [ $(($(now_ms) - orphaned)) -lt 50000 ]; do sleep 0.05; done
  for _ in $(seq 1200); do [ -s "orphan-$i.end" ] && break; sleep 0.05; done
  ends "A8 a worker whose service was killed" 69 "$orphaned" "${workers[$i]}" \
    "$(($(cat "orphan-$i.end") - orphaned))"
done
workers=()
contains "A8 a worker whose service was killed: it says so" "could not rejoin the service" \
  "$(cat worker-model.log)"

# An actor that hangs while the heart of its worker goes on beating: it is found by its silence, and by what does not
# end. It hangs in some launch after the sixtieth, when it is known how long an iteration takes.
long_answer() { # CODE
  curl -sS -o reply -w '%{http_code}' --max-time 300 -H 'content-type: application/json' \
    -d '{"model":"SmolLM2-135M-Instruct.Q4_1","prompt":"x","max_tokens":300,"ignore_eos":true}' \
    "http://127.0.0.1:$port/v1/completions" >"$1"
}
join=127.0.0.1:$(free_port)
begin_worker() {
  "$lamella" worker --role attention --join "$join" --secret-file secret --dead-seconds 20 "$@" 2>>hangs-worker.log &
  hanging=$!
  workers+=("$hanging")
}
# All threads of the actors of a service hang, one after the other: nobody is left to tell of it. Meanwhile the next part
# runs.
serve all-hang.log --failpoint shard.launch=0.02:hang
all_hang=$server
workers=("$all_hang")
all_hang_began=$(now_ms)
long_answer all-hang.code &
all_hang_client=$!
(while runs "$all_hang"; do sleep 0.05; done; now_ms >all-hang.end) &

begin_worker --failpoint shard.launch=0.02:hang
serve hangs.log --set control.listen="$join" --set control.secret_file=secret \
  --set pools.attention.placement=remote --set pools.attention.threads=1
began=$(now_ms)
long_answer code &
client=$!
ends "A2 a worker of another host hangs" 70 "$began" "$hanging"
contains "A2 a worker of another host hangs: it says so" "timed out" "$(cat hangs-worker.log)"
begin_worker
wait "$client"
expect "A2 a worker of another host hangs: the request ends with the next one" 200 "$(cat code)"
kill -KILL "$hanging"
stop "A2 a worker of another host hangs"

while runs "$all_hang" && [ $(($(now_ms) - all_hang_began)) -lt 50000 ]; do sleep 0.05; done
for _ in $(seq 1200); do [ -s all-hang.end ] && break; sleep 0.05; done
ends "A8 all threads of the actors hang" 70 "$all_hang_began" "$all_hang" "$(($(cat all-hang.end) - all_hang_began))"
workers=()
wait "$all_hang_client"
contains "A8 all threads of the actors hang: it says so" "no actor has run for" "$(cat all-hang.log)"

# A log on a full disk costs the lines, and nothing else.
port=$(free_port)
"$lamella" serve --listen "127.0.0.1:$port" --set admin.listen=127.0.0.1:0 2>/dev/full &
server=$!
for _ in $(seq 3000); do
  [ "$(curl -s -o reply -w '%{http_code}' "http://127.0.0.1:$port/ready")" != 200 ] || break
  sleep 0.1
done
expect "A2 gateway, disk full: it serves" 200 "$(asks)"
stop "A2 gateway, disk full"

finish
