# lamella chat, status and bench serve against a running server; run by tests/client/run.
set -uo pipefail
. "$(dirname "$0")/check.sh"
admin=${ADMIN_URL#http://}

answer=$("$LAMELLA" chat --url "$API_URL" --temperature 0 --max-tokens 24 \
  --once "What is the capital of France?")
expect "chat --once ends with 0" 0 $?
contains "chat --once answers" Paris "$answer"
expect "chat takes a URL that ends in /v1" "$answer" "$("$LAMELLA" chat --url "$API_URL/v1" \
  --temperature 0 --max-tokens 24 --once "What is the capital of France?")"
two=$(printf 'My name is Ada.\n\nWhat is my name?' \
  | "$LAMELLA" chat --url "$API_URL" --temperature 0 --max-tokens 60 --system "Be brief.")
first=$(printf 'My name is Ada.\n' \
  | "$LAMELLA" chat --url "$API_URL" --temperature 0 --max-tokens 60 --system "Be brief.")
contains "chat answers line by line" "$first" "$two"
contains "and keeps the conversation" Ada "${two#"$first"}"
error=$("$LAMELLA" chat --url "$API_URL" --model none --once x 2>&1)
expect "chat with an unknown model fails" 1 $?
contains "and says which" none "$error"

status=$("$LAMELLA" status --admin "$admin")
expect "status of a ready server ends with 0" 0 $?
contains "status shows the pool" "main" "$status"
contains "status shows requests" "requests: 0 running" "$status"
expect "status --json is the server's own" 1 "$("$LAMELLA" status --admin "$admin" --json | json 'x["version"]')"

# Ctrl-C in the middle: the answer stops, and the server lets go of it.
"$LAMELLA" chat --url "$API_URL" --max-tokens 2000 --once "Tell a very long story." >"$WORK/story" &
chat=$!
for _ in $(seq 300); do [ -s "$WORK/story" ] && break; sleep 0.1; done
python3 -c 'import os, signal, sys; os.kill(int(sys.argv[1]), signal.SIGINT)' "$chat"
wait "$chat"
expect "Ctrl-C ends chat --once with 130" 130 $?
used=-1
for _ in $(seq 100); do
  used=$("$LAMELLA" status --admin "$admin" --json | json 'sum(p["slots"]["used"] for p in x["pools"])')
  [ "$used" = 0 ] && break
  sleep 0.1
done
expect "and no slot stays in use" 0 "$used"

closed=$("$LAMELLA" bench serve --url "$API_URL" --concurrency 8 --requests 24 --input-tokens 64 \
  --output-tokens 16 --save "$WORK/closed.json" --goodput ttft:60000)
expect "bench serve, closed loop, ends with 0" 0 $?
contains "it prints the known block" "============ Serving Benchmark Result ============" "$closed"
contains "with all requests" "Successful requests:                     24" "$closed"
contains "with exact input tokens" "Total input tokens:                      1536" "$closed"
contains "with exact output tokens" "Total generated tokens:                  384" "$closed"
expect "its file has each request" "24 24" \
  "$(json 'len(x["ttfts"]), len(x["itls"])' <"$WORK/closed.json" | tr -d '(),')"
open=$("$LAMELLA" bench serve --url "$API_URL" --endpoint chat --rate 20 --seed 7 --requests 20 \
  --input-tokens 64 --output-tokens 8 --json)
expect "bench serve, open loop, ends with 0" 0 $?
expect "it counts by the server's usage" "20 1280 160" \
  "$(json 'x["completed"], x["total_input_tokens"], x["total_output_tokens"]' <<<"$open" | tr -d '(),')"
finish
