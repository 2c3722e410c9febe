# lamella chat, status and bench serve against a running server; run by tests/client/run.
set -uo pipefail
. "$(dirname "$0")/check.sh"
admin=${ADMIN_URL#http://}

answer=$("$LAMELLA" chat --url "$API_URL" --temperature 0 --max-tokens 24 \
  --once "What is the capital of France? Answer in one sentence.")
expect "chat --once ends with 0" 0 $?
contains "chat --once answers" Paris "$answer"
expect "chat takes a URL that ends in /v1" "$answer" "$("$LAMELLA" chat --url "$API_URL/v1" \
  --temperature 0 --max-tokens 24 --once "What is the capital of France? Answer in one sentence.")"
# The second question means nothing without the first.
talk=$(printf 'What is the capital of France? Answer in one sentence.\n\nAnd of Italy?\n' \
  | "$LAMELLA" chat --url "$API_URL" --temperature 0 --max-tokens 24)
contains "chat answers line by line" "$answer" "$talk"
contains "and keeps the conversation" Rome "${talk#"$answer"}"
error=$("$LAMELLA" chat --url "$API_URL" --model none --once x 2>&1)
expect "chat with an unknown model fails" 1 $?
contains "and says which" none "$error"

status=$("$LAMELLA" status --admin "$admin")
expect "status of a ready server ends with 0" 0 $?
for _ in $(seq 600); do # the answers above are out; that they have ended may take a moment more
  case $status in *"requests: 0 running"*) break ;; esac
  sleep 0.1
  status=$("$LAMELLA" status --admin "$admin")
done
contains "status shows the pool" "main" "$status"
contains "status shows requests" "requests: 0 running" "$status"
expect "status --json is the server's own" 1 "$("$LAMELLA" status --admin "$admin" --json | json 'x["version"]')"

# Ctrl-C at the first byte of a long answer: it stops, and the server lets go of it.
python3 - "$LAMELLA" chat --url "$API_URL" --temperature 0 --max-tokens 7000 \
  --once "Count from 1 to 1000, one number per line." <<'EOF'
import signal, subprocess, sys
chat = subprocess.Popen(sys.argv[1:], stdout=subprocess.PIPE)
chat.stdout.read(1)
chat.send_signal(signal.SIGINT)
chat.stdout.read()
sys.exit(chat.wait(300))
EOF
expect "Ctrl-C ends chat --once with 130" 130 $?
used=-1
for _ in $(seq 600); do
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

"$LAMELLA" bench serve --url "$API_URL" --rates 20,40 --requests 6 --input-len uniform:40,60 --output-len \
  normal:8,2,4,12 --goodput ttft:1000x e2e:60000 --svg "$WORK/curve.svg" --save "$WORK/sweep.json" \
  --save-format guidellm >"$WORK/sweep.txt"
expect "bench serve, a sweep of rates, ends with 0" 0 $?
expect "its file has a run for each rate" "6 6" "$(json \
  '" ".join(str(b["metrics"]["request_totals"]["successful"]) for b in x["benchmarks"])' <"$WORK/sweep.json")"
contains "its picture has both rates" ">40/s<" "$(cat "$WORK/curve.svg")"
printf 'arrival_s,prompt_tokens,output_tokens\n5,40,6\n5.1,50,7\n' >"$WORK/trace.csv"
traced=$("$LAMELLA" bench serve --url "$API_URL" --trace "$WORK/trace.csv" --save "$WORK/traced.json" --json)
expect "bench serve with a trace ends with 0" 0 $?
expect "its requests have the lengths of the trace" "40 50 6 7" \
  "$(json '" ".join(map(str, x["input_lens"] + x["output_lens"]))' <"$WORK/traced.json")"
printf '[{"conversations": [{"from": "human", "value": "Name a colour."}, {"from": "gpt", "value": "Red."}]}]' \
  >"$WORK/set.json"
asked=$("$LAMELLA" bench serve --url "$API_URL" --endpoint chat --dataset "$WORK/set.json" --requests 2 --json)
expect "bench serve with conversations ends with 0" 0 $?
expect "answers are as long as those of the file" "2 4" \
  "$(json 'x["completed"], x["total_output_tokens"]' <<<"$asked" | tr -d '(),')"
talk='{"from": "human", "value": "Name a colour."}, {"from": "gpt", "value": "Red."}'
printf '[{"conversations": [%s, %s]}]' "$talk" "$talk" >"$WORK/talks.json"
asked=$("$LAMELLA" bench serve --url "$API_URL" --endpoint chat --dataset "$WORK/talks.json" --turns 2 --requests 3 --json)
expect "bench serve with two turns of each conversation ends with 0" 0 $?
expect "each conversation has both, and the second finds the first in the prefix cache" "6 3 True" \
  "$(json 'x["completed"], x["lamella"]["turns"]["conversations"], x["lamella"]["turns"]["later_cached_tokens"] > 48' <<<"$asked" | tr -d '(),')"
printf '{"timestamp": %d, "input_length": 700, "output_length": 2, "hash_ids": [1, %d]}\n' 0 2 9 3 >"$WORK/trace.jsonl"
asked=$("$LAMELLA" bench serve --url "$API_URL" --trace "$WORK/trace.jsonl" --concurrency 1 --json)
expect "bench serve with hash_ids ends with 0" 0 $?
expect "the first 512 tokens of a pair are shared, and no others" "True" \
  "$(json '512 * 32 <= x["total_cached_tokens"] <= 520 * 32' <<<"$asked")"

# transformers in float32 says 15.623 (tests/golden).
text=$(dirname "$0")/../golden/model_text.txt
told=$("$LAMELLA" bench perplexity "$text" --kv f16,q8 --json)
expect "bench perplexity ends with 0" 0 $?
expect "it is that of transformers" "True True" \
  "$(json '[abs(r["perplexity"] / 15.623 - 1) < 0.01 for r in x["rows"]]' <<<"$told" | tr -d '[],')"
finish
