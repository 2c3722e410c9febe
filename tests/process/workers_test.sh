#!/usr/bin/env bash
# Worker processes of the real program: one command starts them, they give the tokens of a single
# process, lost ones are replaced while requests go on, and nothing is left behind.
#
# usage: tests/process/workers_test.sh LAMELLA SOURCE   (exit code 77: skipped, no default model)
set -uo pipefail
. "$(dirname "$0")/service.sh" 2 "$@"

# long_answers FILE: prompts of up to a thousand tokens, on both sides of the threshold for pulls.
long_answers() { answers "$1" 10 8 67 500; }

serve single.log
answers single.txt 32 24
long_answers long.txt
stop "a single process"
expect "32 answers of a single process" 32 "$(grep -c logprobs single.txt)"

for transport in shm tcp; do
  serve "$transport.log" --config "$source/config/two-pools.yaml" --set "net.transport=$transport"
  pids=$(children)
  expect "$transport: six worker processes" 6 "$(echo "$pids" | wc -w)"
  answers "$transport.txt" 32 24
  cmp -s single.txt "$transport.txt"
  expect "$transport: 32 concurrent requests give the single process's tokens" 0 $?
  long_answers "$transport.long.txt"
  cmp -s long.txt "$transport.long.txt"
  expect "$transport: and so do long prompts" 0 $?
  pulled=$(metric lamella_kv_pulled_bytes_total)
  expect "$transport: whose KV was pulled" 1 $((pulled > 0))
  hits=$(metric vllm:prefix_cache_hits_total)
  long_answers "$transport.again.txt"
  cmp -s long.txt "$transport.again.txt"
  expect "$transport: asked again, the same tokens" 0 $?
  expect "$transport: asked again, the shards have them still" 1 $(($(metric vllm:prefix_cache_hits_total) > hits + 1000))
  expect "$transport: status names every seat" \
    "attention/0 attention/1 attention/2 model/0 model/1 prefill/0" \
    "$(status | json '" ".join(sorted(w["seat"] for w in x["workers"]))')"
  expect "$transport: and the tier of every link" "$transport" \
    "$(status | json '" ".join(sorted({p["transport"] for w in x["workers"] for p in w["peers"]}))')"
  expect "$transport: whose bytes are counted" 2 \
    "$(curl -s "http://127.0.0.1:$admin/metrics" |
      grep -c "^lamella_link_bytes_total{peer_role=\"\(attention\|model\)\",transport=\"$transport\"} [1-9]")"
  if [ "$transport" = shm ]; then
    # Each role in turn is killed while requests run.
    for seat in attention/1 model/0 prefill/0; do
      victim=$(pid_of "$seat")
      running=0
      for _ in 1 2 3 4 5; do # who stands still while they run asks them once more
        answers lost.txt 32 24 &
        client=$!
        while [ "$running" -lt 16 ] && kill -0 "$client" 2>/dev/null; do
          running=$(status | json 'x["requests"]["running"]')
        done
        [ "$running" -lt 16 ] || break
        wait "$client"
      done
      kill -KILL "$victim"
      wait "$client"
      expect "$seat is killed while requests run" 1 $((running >= 16))
      cmp -s single.txt lost.txt
      expect "$seat is killed: the same tokens" 0 $?
      # Requests may have ended without it: the others of its role went on.
      sits_again "$seat" 2
      expect "$seat sits again, as another incarnation" 0 $?
    done
    # K and V of prompts are being pulled from the prefill worker: either side is killed.
    for seat in prefill/0 attention/2; do
      before=$(metric lamella_kv_pulled_bytes_total)
      salt=$seat long_answers pulled.txt &
      client=$!
      victim=$(pid_of "$seat")
      for _ in $(seq 400); do
        pulled=$(($(metric lamella_kv_pulled_bytes_total) - before))
        [ "$pulled" -eq 0 ] || break
      done
      kill -KILL "$victim"
      wait "$client"
      total=$(($(metric lamella_kv_pulled_bytes_total) - before))
      expect "$seat is killed during pulls" 1 $((pulled > 0 && pulled < total))
      cmp -s long.txt pulled.txt
      expect "$seat is killed during pulls: the same tokens" 0 $?
      none_in_use "$seat is killed during pulls"
    done
    # One that hangs answers nobody and does not end: it is killed, and another one sits there.
    victim=$(pid_of attention/2)
    kill -STOP "$victim"
    for _ in $(seq 1200); do
      again=$(status | json "([w['pid'] for w in x['workers'] if w['seat'] == 'attention/2' and w['state'] == 'live'] or [$victim])[0]")
      [ "$again" = "$victim" ] || break
      sleep 0.1
    done
    expect "attention/2 hangs: another process takes its seat" 0 "$([ "$again" != "$victim" ]; echo $?)"
    gone "$victim"
    expect "attention/2 hangs: it is gone" 0 $?
    answers hung.txt 32 24
    cmp -s single.txt hung.txt
    expect "attention/2 hangs: the same tokens afterwards" 0 $?
    pids="$pids $(children)"
  fi
  stop "$transport"
  gone $pids
  expect "$transport: no worker process is left" 0 $?
  expect "$transport: no shared memory is left" "" "$(find /dev/shm -name '*lamella*' -newer "$work/single.log")"
done

# The gateway is killed: no orphan.
serve killed.log --config "$source/config/one-node.yaml"
pids=$(children)
kill -KILL "$server"
wait "$server" 2>/dev/null
server=
for _ in $(seq 1200); do gone $pids && break; sleep 0.1; done
gone $pids
expect "a killed gateway leaves no orphan" 0 $?

finish
