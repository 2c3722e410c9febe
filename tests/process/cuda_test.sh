#!/usr/bin/env bash
# Worker processes of the real program on CUDA devices.
#
# usage: tests/process/cuda_test.sh LAMELLA WRITE_TINY_MODEL GPU_PART
set -uo pipefail
. "$(dirname "$0")/cuda_service.sh"

"$write" "$work/$model" $context halves
common=(--set "model.path=$work/$model" --set kv.bytes=$kv --set batching.max_batch=8
  --set batching.prefill_chunk_tokens=32 --set pools.model.threads=1 --set pools.attention.threads=1)
both=(--set "pools.model.device=$(device 0)" --set "pools.attention.device=$(device 1)")
processes=(--set pools.model.placement=local --set pools.attention.placement=local)
# ask FILE: few short requests; a token takes the emulated devices some hundredths of a second.
ask() { answers "$1" 3 5 1 3; }
longer="2 16 1 3" begun=3 # of requests whose workers are killed once they decode
[ "$real" = 0 ] || longer="2 400 1 3" begun=60
# where ROLE: what its workers compute on.
where() { status | json "' '.join(sorted({w['device'] for w in x['workers'] if w['role'] == '$1'}))"; }

serve single.log "${common[@]}" "${both[@]}"
ask single.txt
expect "3 answers of a single process" 3 "$(grep -c logprobs single.txt)"
answers longer.txt $longer
stop "a single process"

for transport in shm tcp; do
  serve "$transport.log" "${common[@]}" "${both[@]}" "${processes[@]}" --set "net.transport=$transport" \
    --set pools.attention.members=2
  expect "$transport: replicas compute on the device" "$(named 0)" "$(where model)"
  expect "$transport: and shards attend on another" "$(named 1)" "$(where attention)"
  ask "$transport.txt"
  cmp -s single.txt "$transport.txt"
  expect "$transport: the tokens of a single process" 0 $?
  expect "$transport: status tells the tier of every link" "$transport" \
    "$(status | json '" ".join(sorted({p["transport"] for w in x["workers"] for p in w["peers"]}))')"
  if [ "$transport" = shm ]; then
    for _ in 1 2 3 4 5; do # who stands still while it records asks once more
      answers traced.txt $longer &
      client=$!
      "$lamella" trace --admin "127.0.0.1:$admin" --for 2s -o trace.json >/dev/null
      wait "$client"
      recorded=$(json "' '.join(sorted({w['seat'] for w in x['otherData']['workers'] for e in x['traceEvents']
        if e['pid'] == w['process'] and e['name'].startswith('iteration ') and e['dur'] > 0}))" <trace.json)
      [ "$recorded" != "attention/0 attention/1 model/0" ] || break
    done
    expect "$transport: whole iterations of each device are recorded" "attention/0 attention/1 model/0" "$recorded"
    killed "attention/1 is killed" longer.txt "$longer" attention/1
    killed "model/0 is killed" longer.txt "$longer" model/0
  fi
  stop "$transport"
done

# Each on a device of its own, as far as there are some up to the next pool's.
if [ "$real" = 0 ] || [ "$real" -ge 4 ]; then
  export LAMELLA_EMULATED_DEVICES=4
  serve own.log "${common[@]}" "${processes[@]}" --set pools.model.device=cuda:0 --set pools.model.members=2 \
    --set pools.attention.device=cuda:2 --set pools.attention.members=2 --set pools.attention.spares=1
  expect "replicas have devices of their own" "$(named 0 1)" "$(where model)"
  expect "shards go round those from theirs on" "$(named 2 3)" "$(where attention)"
  contains "the log tells who shares" "role=attention processes=3 with_devices_of_their_own=2" "$(cat own.log)"
  ask own.txt
  cmp -s single.txt own.txt
  expect "devices of their own: the tokens of a single process" 0 $?
  stop "devices of their own"
  unset LAMELLA_EMULATED_DEVICES
fi

# Prompts are computed by a worker of their own; the shards attend to them.
serve prefill.log "${common[@]}" "${both[@]}" "${processes[@]}" --set pools.prefill.placement=local \
  --set "pools.prefill.device=$(device 1)"
ask prefill.txt
cmp -s single.txt prefill.txt
expect "a prefill worker: the same tokens" 0 $?
stop "a prefill worker"

# A replica of two ranks, and its shards beside the second one.
if [ "$real" != 1 ]; then
  ranks=(--set pools.model.tensor_parallel=2)
  serve ranks.log "${common[@]}" "${both[@]}" "${ranks[@]}"
  ask ranks.txt
  stop "two ranks in one process"
  serve far.log "${common[@]}" "${both[@]}" "${ranks[@]}" "${processes[@]}" --set pools.prefill.placement=local \
    --set pools.prefill.device=cuda:0
  expect "L-M03 a worker says what its ranks compute on" "$(named 0), $(named 1)" "$(where model)"
  ask far.txt
  cmp -s ranks.txt far.txt
  expect "L-M03 two ranks in a worker: the tokens of one process" 0 $?
  stop "two ranks in a worker"
fi

# One pool on the host, which this process is as well as another one.
mixed=(--set "pools.model.device=$(device 0)" --set pools.attention.device=host)
serve mixed.log "${common[@]}" "${mixed[@]}"
ask mixed.txt
stop "shards of the host in one process"
serve apart.log "${common[@]}" "${mixed[@]}" "${processes[@]}"
ask apart.txt
cmp -s mixed.txt apart.txt
expect "shards of the host: the tokens of a single process" 0 $?
expect "shards of the host say so" "host" "$(where attention)"
stop "shards of the host"
serve here.log "${common[@]}" "${mixed[@]}" --set pools.attention.placement=local
ask here.txt
cmp -s mixed.txt here.txt
expect "a replica of the control process on its device: the same tokens" 0 $?
stop "a replica of the control process"

# Without the GPU part nothing starts, and the reason is told.
rm bin/liblamella_cuda.so
said=$("$lamella" serve "${common[@]}" "${both[@]}" "${processes[@]}" 2>&1)
expect "no GPU part: exit code" 69 $?
contains "no GPU part: the reason" "pools.model.device: no GPU support: " "$said"
said=$("$lamella" config check "${common[@]}" "${both[@]}" "${processes[@]}" 2>&1)
contains "no GPU part: config check says it, too" "pools.attention.device: no GPU support: " "$said"
finish
