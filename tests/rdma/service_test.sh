#!/usr/bin/env bash
# Worker processes on CUDA devices whose adapters read and write the devices' memory (net.transport verbs_gpudirect):
# the real program, an adapter in software in a guest, and the real GPU part over kernels that run lane by lane on the
# CPU. They answer with the bytes of a single process. Exit code 77: no guests here, and why.
#
# usage: tests/rdma/service_test.sh LAMELLA WRITE_TINY_MODEL GPU_PART
set -uo pipefail
own_model=tiny.gguf
[ $# = 3 ] || { sed -n '2,/^set/p' "$0" | grep '^#' >&2; exit 2; }
here=$(cd "$(dirname "$0")" && pwd) write=$2 part=$3
. "$here/../process/service.sh" 1 "$1"

mkdir bin
cp "$lamella" bin/lamella
cp "$part" bin/liblamella_cuda.so # the program looks for it beside itself
lamella=$work/bin/lamella
"$write" "$work/$model" 512 halves
words=(--set kv.bytes=2MiB --set batching.max_batch=4 --set batching.prefill_chunk_tokens=32
  --set pools.model.threads=1 --set pools.attention.threads=1
  --set pools.model.device=cuda:0 --set pools.attention.device=cuda:1)
body='{"model":"tiny","prompt":"hi","max_tokens":4,"temperature":0.8,"seed":54,"ignore_eos":true,"logprobs":1}'
choices() { json 'json.dumps(x["choices"], sort_keys=True)'; }

serve single.log --set "model.path=$work/$model" "${words[@]}"
wanted=$(curl -s -m 300 "http://127.0.0.1:$port/v1/completions" -H 'Content-Type: application/json' -d "$body" | choices)
contains "a single process answers" '"tokens"' "$wanted"
stop "a single process"

# Everything takes an emulated processor long: who is silent is not dead.
"$here/guests" --limit 1000 --program "$lamella" --program "$work/bin/liblamella_cuda.so" --program "$work/$model" \
  --program "$(command -v curl)" --program "$here/guest_service" -- \
  "sh /bin/guest_service '$body' ${words[*]} --set pools.model.placement=local --set pools.attention.placement=local \
    --set pools.attention.members=2 --set net.transport=verbs_gpudirect --set control.dead_seconds=60 \
    --set health.iteration_max_age_seconds=600 --set recovery.max_pause_seconds=300" true >page
code=$?
[ $code != 77 ] || { cat page; exit 77; }
expect "the guest's service ends with 0" 0 $code
[ $code = 0 ] || tail -n 40 page
expect "devices whose memory an adapter reaches give the tokens of a single process" "$wanted" \
  "$(grep '^{"id"' page | choices)"
# Each link tells at both ends how it came up, and again where it had to be made anew.
up=$(grep -c 'link up' page)
expect "all four ends of the two links lie in memory of the devices" "1 $up" \
  "$((up >= 4)) $(grep -c 'link up.*tier=verbs_gpudirect.*frames lie in memory of cuda:' page)"
tail -n 1 page
finish
