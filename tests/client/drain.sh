# SIGTERM while an answer is streamed: it is completed, and new requests are refused; run by
# tests/client/run, which checks the exit code.
set -uo pipefail
. "$(dirname "$0")/check.sh"

name=$(curl -sS "$API_URL/v1/models" | json 'x["data"][0]["id"]')
ask() {
  curl -sSN --max-time 600 -H 'content-type: application/json' -d "{\"model\":\"$name\",\"stream\":true,
    \"prompt\":\"Once upon a time\",\"max_tokens\":$1,\"ignore_eos\":true,\"temperature\":0}" \
    "$API_URL/v1/completions"
}
ask 400 >"$WORK/stream" &
client=$!
for _ in $(seq 3000); do
  [ "$(grep -c '^data: ' "$WORK/stream")" -ge 3 ] && break
  sleep 0.1
done
kill -TERM "$SERVER_PID"
touch "$WORK/terminated"
late=
for _ in $(seq 50); do
  late=$(curl -sS -o "$WORK/late" -w '%{http_code}' -H 'content-type: application/json' \
    -d "{\"model\":\"$name\",\"prompt\":\"x\",\"max_tokens\":1}" "$API_URL/v1/completions" 2>&1)
  [ "$late" = 200 ] || break
done
# A drain that is already over has closed the port, or closes it to who comes just then; a running one says so.
case $late in
  503) expect "a drain refuses new requests" draining "$(json 'x["error"]["code"]' <"$WORK/late")" ;;
  *) contains "a drain refuses new requests" 000 "$late" ;; # what curl calls no answer at all
esac
wait "$client"
expect "the running stream was completed" "data: [DONE]" "$(grep -v '^$' "$WORK/stream" | tail -n 1)"
expect "with all of its tokens" '"finish_reason":"length"' \
  "$(grep -o '"finish_reason":"[a-z]*"' "$WORK/stream" | tail -n 1)"
finish
