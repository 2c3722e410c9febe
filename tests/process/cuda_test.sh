#!/usr/bin/env bash
# Worker processes of the real program on CUDA devices. The GPU part they load is the real one over kernels that run
# lane by lane on the CPU (tests/emulated), so no GPU is needed, and nothing is said of one.
#
# usage: tests/process/cuda_test.sh LAMELLA WRITE_TINY_MODEL GPU_PART
set -uo pipefail
own_model=tiny.gguf
[ $# = 3 ] || { sed -n '2,/^set/p' "$0" | grep '^#' >&2; exit 2; }
write=$2 part=$3
. "$(dirname "$0")/service.sh" 1 "$1"

# The program looks for its GPU part beside itself.
mkdir bin
cp "$lamella" bin/lamella
ln -s "$part" bin/liblamella_cuda.so
lamella=$work/bin/lamella
"$write" "$work/$model" 512 halves
common=(--set "model.path=$work/$model" --set kv.bytes=2MiB --set batching.max_batch=8
  --set batching.prefill_chunk_tokens=32 --set pools.model.threads=1 --set pools.attention.threads=1)
both=(--set pools.model.device=cuda:0 --set pools.attention.device=cuda:1)
processes=(--set pools.model.placement=local --set pools.attention.placement=local)
# ask FILE: few short requests; a token takes the emulated devices some hundredths of a second.
ask() { answers "$1" 3 5 1 3; }
# where ROLE: what its workers compute on.
where() { status | json "' '.join(sorted({w['device'] for w in x['workers'] if w['role'] == '$1'}))"; }

serve single.log "${common[@]}" "${both[@]}"
ask single.txt
expect "3 answers of a single process" 3 "$(grep -c logprobs single.txt)"
stop "a single process"

for transport in shm tcp; do
  serve "$transport.log" "${common[@]}" "${both[@]}" "${processes[@]}" --set "net.transport=$transport" \
    --set pools.attention.members=2
  expect "$transport: replicas compute on the device" "cuda:0 emulated" "$(where model)"
  expect "$transport: and shards attend on it" "cuda:0 emulated" "$(where attention)"
  ask "$transport.txt"
  cmp -s single.txt "$transport.txt"
  expect "$transport: the tokens of a single process" 0 $?
  expect "$transport: status tells the tier of every link" "$transport" \
    "$(status | json '" ".join(sorted({p["transport"] for w in x["workers"] for p in w["peers"]}))')"
  if [ "$transport" = shm ]; then
    for seat in attention/1 model/0; do
      victim=$(pid_of "$seat")
      ask lost.txt &
      client=$!
      kill -KILL "$victim"
      wait "$client"
      cmp -s single.txt lost.txt
      expect "$seat is killed: the same tokens" 0 $?
      sits_again "$seat" 2
      expect "$seat sits again" 0 $?
    done
  fi
  stop "$transport"
done

# Prompts are computed by a worker of their own; the shards attend to them.
serve prefill.log "${common[@]}" "${both[@]}" "${processes[@]}" --set pools.prefill.placement=local \
  --set pools.prefill.device=cuda:1
ask prefill.txt
cmp -s single.txt prefill.txt
expect "a prefill worker: the same tokens" 0 $?
stop "a prefill worker"

# One pool on the host, which this process is as well as another one.
mixed=(--set pools.model.device=cuda:0 --set pools.attention.device=host)
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
