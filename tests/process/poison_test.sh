#!/usr/bin/env bash
# One request of eight ends whatever worker serves it: it alone is failed, the seven others end with
# the text they have without it, and the service lives on.
#
# usage: tests/process/poison_test.sh LAMELLA WRITE_TINY_MODEL SOURCE
set -uo pipefail
. "$(dirname "$0")/tiny_service.sh"

poison=258 # a byte that no other prompt has; other answers must not draw it

# eight FILE: eight requests at the same time, of which number 5 has the token in its prompt; one
# line each: the choices, or status, x-should-retry, code and reason.
eight() {
  python3 - "$port" "$poison" >"$1" <<'PYTHON'
import concurrent.futures, json, sys, time, urllib.error, urllib.request
port, poison = map(int, sys.argv[1:])
def ask(i):
    prompt = [140, 141, poison, 253] if i == 5 else f"Once upon a time number {i} " + "went on " * (5 * i)
    body = {"model": "tiny", "prompt": prompt, "max_tokens": 192, "ignore_eos": True, "seed": i, "temperature": 0.8,
            "logprobs": 1, "logit_bias": {poison: -100}}
    request = urllib.request.Request(f"http://127.0.0.1:{port}/v1/completions", json.dumps(body).encode(),
                                     {"content-type": "application/json"})
    while True: # what is not accepted because workers are started again is asked again
        try:
            with urllib.request.urlopen(request, timeout=600) as reply:
                return json.dumps(json.load(reply)["choices"], sort_keys=True)
        except urllib.error.HTTPError as e:
            error = json.load(e)["error"]
            if e.code == 503:
                time.sleep(0.1)
                continue
            reason = error.get("lamella", {}).get("detail", {}).get("reason")
            return f"{e.code} {e.headers['x-should-retry']} {error['code']} {reason}"
with concurrent.futures.ThreadPoolExecutor(8) as pool:
    for line in pool.map(ask, range(8)):
        print(line)
PYTHON
}

serve single.log "${tiny[@]}"
eight single.txt
stop "a single process"
expect "eight answers of a single process" 8 "$(grep -c logprobs single.txt)"
sed '6s/.*/500 false internal_error request_poisoned/' single.txt >wanted.txt

# kills NAME POINT CONFIG: the request ends every worker that serves it.
kills() {
  local name=$1
  serve log --config "$source/config/$3" "${tiny[@]}" --failpoint "$2=1:crash:$poison"
  for round in first second; do # what the first one cost is not held against the workers
    eight got.txt
    diff wanted.txt got.txt >difference.txt
    expect "$name: the $round one is failed alone, the others have their tokens" 0 $?
    [ ! -s difference.txt ] || { cut -c 1-300 difference.txt; grep -v '"request_id' log | tail -n 40; }
  done
  # Two ends of a request that runs alone make a culprit; where others ran with it, it takes more.
  expect "$name: the workers ended by SIGSEGV" 1 $(($(grep -c 'how=\\"signal 11' log) >= 4))
  expect "$name: each is counted" 2 "$(metric lamella_requests_poisoned_total)"
  expect "$name: each is told with a digest" 2 "$(grep -c 'request poisoned .*digest=' log)"
  lacks "$name: and without its tokens" "$poison, 253" "$(cat log)"
  for _ in $(seq 1200); do # the last one that ended is back
    tree=$("$lamella" status --tree --admin "127.0.0.1:$admin")
    case $tree in *missing* | *loading*) sleep 0.1 ;; *) break ;; esac
  done
  expect "$name: status --tree shows who was started again" 1 \
    $(($(echo "$tree" | grep -c '[─] [a-z]*/[0-9]* .* live .* [1-9][0-9]* restart') > 0))
  none_in_use "$name"
  expect "$name: the service lives" 0 "$(kill -0 "$server"; echo $?)"
  stop "$name"
}

kills "one replica" worker.token one-node.yaml
kills "two replicas and a prefill worker" worker.token two-pools.yaml
kills "shards" shard.token two-pools.yaml
kills "shards with parity" shard.token parity.yaml

finish
