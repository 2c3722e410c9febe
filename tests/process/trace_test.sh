#!/usr/bin/env bash
# The pipeline of worker processes, recorded while they decode: every iteration is whole, spans of a lane lie apart or
# within each other, and the attention of a layer lies between the send of its Q and the end of the wait for it.
#
# usage: tests/process/trace_test.sh LAMELLA WRITE_TINY_MODEL SOURCE
set -u
. "$(dirname "${BASH_SOURCE[0]}")/tiny_service.sh"
here=$source/tests/process

serve log "${tiny[@]}" --set pools.model.placement=local --set pools.attention.placement=local \
  --set pools.attention.members=3

# Tokens are made until the recordings are there.
while [ ! -e enough ]; do answers tokens.txt 4 64; done &
asker=$!
for _ in $(seq 60); do
  "$lamella" trace --admin "127.0.0.1:$admin" --for 500ms -o trace.json --svg trace.svg >page 2>trouble || break
  python3 "$here/trace_check.py" trace.json quiet && break
done
touch enough
wait "$asker"
python3 "$here/trace_check.py" trace.json
expect "the trace is whole" 0 $?
expect "nobody is left out" "" "$(cat trouble)"
expect "every worker is told of" 4 "$(grep -c '^\(model\|attention\)/' page)"
python3 - trace.svg <<'PYTHON'
import sys, xml.dom.minidom
document = xml.dom.minidom.parse(sys.argv[1])
words = [node.firstChild.data for node in document.getElementsByTagName("text") if node.firstChild]
for worker in ["model/0", "attention/0", "attention/1", "attention/2"]:
    assert any(word.startswith(worker) for word in words), worker
PYTHON
expect "the picture is XML and has every worker" 0 $?
for _ in $(seq 100); do # who looks for the first time is told a moment later
  busy=$(status | json 'sum(w["busy"] is not None and 0 <= w["busy"] <= 1 for w in x["workers"])')
  [ "$busy" != 4 ] || break
  sleep 0.1
done
expect "status tells how busy each worker was" 4 "$busy"
# A worker that stands still is left out, and told of.
victim=$(pid_of attention/1)
kill -STOP "$victim"
"$lamella" trace --admin "127.0.0.1:$admin" --for 100ms -o stopped.json >/dev/null 2>stopped
code=$?
kill -CONT "$victim" 2>/dev/null
expect "a recording without one of them ends well" 0 $code
stop "the service"
finish
