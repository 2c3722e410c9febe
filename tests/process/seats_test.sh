#!/usr/bin/env bash
# One broken seat does not end a service: the program, the model file, a bit of a weight or of the tokeniser is broken
# under a worker that has to start again, while requests go on. The others serve on with the same tokens, the seat is
# told of, and when the cause is gone it is back without anybody's help.
#
# usage: tests/process/seats_test.sh LAMELLA WRITE_TINY_MODEL SOURCE
set -uo pipefail
. "$(dirname "$0")/tiny_service.sh"

serve single.log "${tiny[@]}"
answers golden.txt 8 48
stop "a single process"
expect "eight answers of a single process" 8 "$(grep -c logprobs golden.txt)"

# The service runs a program and a model file of its own, which can be broken.
cp "$lamella" program
cp "$model" good.gguf
installed() { # installed FILE: as the program, in one step
  cp "$1" fresh && mv fresh program
}
cp program good
printf '#!/bin/sh\nexit 3\n' >bad
chmod +x bad
# flip OFFSET: one bit of the model file, in place. Negative: from its end.
flip() {
  python3 - "$model" "$1" <<'PYTHON'
import os, sys
with open(sys.argv[1], "r+b") as f:
    f.seek(int(sys.argv[2]), os.SEEK_SET if int(sys.argv[2]) >= 0 else os.SEEK_END)
    at, byte = f.tell(), f.read(1)[0]
    f.seek(at)
    f.write(bytes([byte ^ 1]))
PYTHON
}
token_text=$(python3 -c 'print(open("good.gguf", "rb").read().index(b"tokenizer.ggml.tokens") + 45)')

health() { curl -s "http://127.0.0.1:$port/health" | json 'x["status"]'; }
# until_true SECONDS COMMAND...: it succeeds.
until_true() {
  local end=$(($(date +%s) + $1))
  shift
  while [ "$(date +%s)" -lt "$end" ]; do
    "$@" && return 0
    sleep 0.1
  done
  return 1
}
trouble_of() { status | json "([w['trouble'] for w in x['missing'] + x['workers'] if w['seat'] == '$1'] or [''])[0]"; }
fails() { [ -n "$(trouble_of "$1")" ]; }
well() { [ "$(health)" = ok ]; }
asks() { # asks NAME: the tokens are those of the single process
  answers got.txt 8 48
  cmp -s golden.txt got.txt
  expect "$1" 0 $?
}

# broken NAME SEAT WHY BREAK MEND: the seat's process is killed when that is broken.
broken() {
  local name=$1 seat=$2 why=$3 others
  others=$(status | json "sorted((w['seat'], w['pid']) for w in x['workers'] if w['seat'] != '$seat')")
  decoding during.txt 8 160
  eval "$4"
  kill -KILL "$(pid_of "$seat")"
  until_true 120 fails "$seat"
  expect "$name: status tells that $seat fails" 0 $?
  contains "$name: and why" "$why" "$(trouble_of "$seat")"
  expect "$name: /health is degraded" degraded "$(health)"
  contains "$name: and names the seat" "failing repeatedly: $seat" "$(curl -s "http://127.0.0.1:$port/health")"
  expect "$name: /ready is 200" 200 "$(curl -s -o reply -w '%{http_code}' "http://127.0.0.1:$port/ready")"
  expect "$name: the metric of the alarm" 1 "$(metric lamella_worker_state 'state="failing"')"
  wait "$client"
  expect "$name: no request that ran was lost" 8 "$(grep -c logprobs during.txt)"
  asks "$name: the others answer, with the same tokens"
  expect "$name: none of the others has ended" "$others" \
    "$(status | json "sorted((w['seat'], w['pid']) for w in x['workers'] if w['seat'] != '$seat')")"
  eval "$5"
  until_true 180 well
  expect "$name: mended, the seat is back without anybody's help" 0 $?
  expect "$name: and nothing fails" 0 "$(metric lamella_worker_state 'state="failing"')"
  asks "$name: mended, the same tokens"
}

asking=$lamella # with the program as it was
lamella=$work/program
serve log --config "$source/config/two-pools.yaml" "${tiny[@]}" --set pools.attention.spares=1
lamella=$asking
until_true 60 well
begun=4
broken "another program" model/1 "exit code 3" 'installed bad' 'installed good'
broken "a program that is gone" model/0 "cannot be started" 'rm program' 'installed good'
broken "a model file cut in place" model/1 "$model" 'truncate -s 20000 "$model"' 'cat good.gguf >"$model"'
broken "a bit of a weight" model/0 "model digest" 'flip -9' 'flip -9'
broken "a bit of the tokeniser" prefill/0 "times in a row: " 'flip $token_text' 'flip $token_text'

# A spare takes the part of a shard that cannot come back.
pids=$(children)
installed bad
seat=$(part "shard 0")
kill -KILL "$(pid_of "$seat")"
until_true 120 fails "$seat"
expect "a shard cannot come back: told" 0 $?
asks "a shard cannot come back: the spare has its part"
# Nobody is left of a role: requests wait, and the service does not end.
decoding during.txt 8 160
kill -KILL "$(pid_of model/0)" "$(pid_of model/1)"
until_true 120 fails model/0
until_true 120 fails model/1
expect "no replica can start: told" 0 $?
expect "no replica can start: /ready is 503" 503 "$(curl -s -o reply -w '%{http_code}' "http://127.0.0.1:$port/ready")"
expect "no replica can start: the service lives" 0 "$(kill -0 "$server"; echo $?)"
installed good
wait "$client"
expect "no replica can start: mended, every request that waited ends" 8 "$(grep -c logprobs during.txt)"
until_true 180 well
expect "mended, all are back" 0 $?
asks "mended, the same tokens"
none_in_use "afterwards"
pids="$pids $(children)"
stop "at last"
gone $pids
expect "no worker process is left" 0 $?

finish
