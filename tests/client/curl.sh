# curl with and without streaming, as in the README; run by tests/client/run.
set -uo pipefail
. "$(dirname "$0")/check.sh"

name=$(curl -sS "$API_URL/v1/models" | json 'x["data"][0]["id"]')
question="{\"model\":\"$name\",\"temperature\":0,\"max_tokens\":24,\"messages\":[{\"role\":\"user\",\"content\":\"What is the capital of France?\"}]"
post() { curl -sS -H 'content-type: application/json' "$@" -w '\n%{http_code}' "$API_URL/v1/chat/completions"; }
status() { tail -n 1 <<<"$1"; }
body() { sed '$d' <<<"$1"; }

whole=$(post -d "$question}")
expect "a chat completion is answered with 200" 200 "$(status "$whole")"
text=$(body "$whole" | json 'x["choices"][0]["message"]["content"]')
contains "it names Paris" Paris "$text"
expect "usage adds up" True \
  "$(body "$whole" | json 'x["usage"]["total_tokens"] == x["usage"]["prompt_tokens"] + x["usage"]["completion_tokens"]')"

stream=$(curl -sSN -H 'content-type: application/json' -d "$question,\"stream\":true}" \
  "$API_URL/v1/chat/completions")
expect "a stream ends with the end mark" "data: [DONE]" "$(grep -v '^$' <<<"$stream" | tail -n 1)"
lacks "a stream has no usage unasked" '"usage"' "$stream"
lacks "a stream has no event names" 'event:' "$stream"
joined=$(sed -n 's/^data: \({.*\)/\1/p' <<<"$stream" | python3 -c '
import json, sys
print("".join(json.loads(l)["choices"][0]["delta"].get("content") or "" for l in sys.stdin))')
expect "the pieces of a stream are the whole answer" "$text" "$joined"
headers=$(curl -sSN -D - -o /dev/null -H 'content-type: application/json' \
  -d "$question,\"stream\":true}" "$API_URL/v1/chat/completions" | tr -d '\r' | tr 'A-Z' 'a-z')
contains "a stream is an event stream" "content-type: text/event-stream" "$headers"
contains "a stream is not buffered by proxies" "x-accel-buffering: no" "$headers"
contains "every answer has a request id" "x-request-id: " "$headers"

wrong() { # NAME STATUS CODE curl arguments...
  local name=$1 code=$2 word=$3 got
  shift 3
  got=$(curl -sS -w '\n%{http_code}' "$@")
  expect "$name: status" "$code" "$(status "$got")"
  expect "$name: code" "$word" "$(body "$got" | json 'x["error"]["code"]')"
}
json_type=(-H 'content-type: application/json')
chat=$API_URL/v1/chat/completions
wrong "no such model" 404 model_not_found "${json_type[@]}" -d '{"model":"none","messages":[{"role":"user","content":"x"}]}' "$chat"
wrong "no such route" 404 route_not_found "$API_URL/v2/chat"
wrong "wrong method" 405 method_not_allowed -X PUT "${json_type[@]}" -d '{}' "$chat"
wrong "not JSON" 400 invalid_json "${json_type[@]}" -d '{"model":' "$chat"
wrong "duplicate keys" 400 invalid_json "${json_type[@]}" -d "$question,\"temperature\":1}" "$chat"
wrong "a number beyond all bounds" 400 invalid_json "${json_type[@]}" -d "$question,\"top_p\":1e400}" "$chat"
wrong "another content type" 415 unsupported_media_type -H 'content-type: text/plain' -d 'x' "$chat"
expect "HEAD of /health has no body" "200 0" \
  "$(curl -sS -I -o /dev/null -w '%{http_code} %{size_download}' "$API_URL/health")"
expect "/ready is 200" 200 "$(curl -sS -o /dev/null -w '%{http_code}' "$API_URL/ready")"
contains "metrics have our own" "lamella_kv_slots" "$(curl -sS "$API_URL/metrics")"
expect "the public listener has no admin routes" 404 \
  "$(curl -sS -o /dev/null -w '%{http_code}' "$API_URL/admin/status")"
finish
