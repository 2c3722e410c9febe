# A service of the real program, its workers and questions to them. Sourced by the process tests:
#   . "$(dirname "$0")/service.sh" WORDS-OF-THE-USAGE "$@"
# Sets `lamella`, `source` (where given) and `work`, goes to `work`, and skips without the default model, unless the
# caller has set `own_model` to the name of one that it makes there.
. "$(dirname "${BASH_SOURCE[0]}")/../client/check.sh"
[ $# = $(($1 + 1)) ] || { sed -n '2,/^set/p' "$0" | grep '^#' >&2; exit 2; }
lamella=$2
source=${3:-}

work=$(mktemp -d)
server=
workers=() # started by the test itself
logs=()    # of the servers that were started
cleanup() {
  # What happened there, where a check has failed: the log is gone with the folder.
  if [ "$failures" != 0 ]; then
    for log in "${logs[@]}"; do printf 'the end of %s:\n' "$log" && tail -n 100 "$work/$log"; done
  fi
  if [ -n "$server" ]; then kill -KILL "$server"; fi
  for pid in "${workers[@]}"; do kill -KILL "$pid"; done
  rm -rf "$work"
} 2>/dev/null
trap cleanup EXIT
model=${own_model:-}
if [ -z "$model" ]; then
  model=${XDG_CACHE_HOME:-$HOME/.cache}/lamella/models/SmolLM2-135M-Instruct.Q4_1.gguf
  [ -f "$model" ] || { echo "SKIPPED: the default model is missing; run '$lamella model fetch'"; exit 77; }
fi
for name in $(compgen -e LAMELLA_); do unset "$name"; done
export XDG_CONFIG_HOME=$work/config
cd "$work" || exit 1

# Machines that run tests stand still for longer than a service would accept: who is silent for some seconds is not
# dead, and an old token no reason not to be ready, unless a test says so behind these.
patient=(--set control.dead_seconds=20 --set health.iteration_max_age_seconds=120
  --set recovery.max_pause_seconds=60)

# serve LOG WORDS...: starts a server on free ports and waits until it is ready. Sets `port`, `admin`.
serve() {
  local log=$1
  shift
  : >"$log"
  case " ${logs[*]} " in *" $log "*) ;; *) logs+=("$log") ;; esac
  "$lamella" serve --listen 127.0.0.1:0 --set admin.listen=127.0.0.1:0 "${patient[@]}" "$@" 2>"$log" &
  server=$!
  for _ in $(seq 3000); do
    port=$(sed -n 's|^ *API *http://127.0.0.1:\([0-9]*\)/v1$|\1|p; s|.* api=http://127.0.0.1:\([0-9]*\)/v1 .*|\1|p' "$log")
    admin=$(sed -n 's|^ *admin *http://127.0.0.1:\([0-9]*\)/metrics$|\1|p; s|.* admin=http://127.0.0.1:\([0-9]*\)/metrics.*|\1|p' "$log")
    [ -z "$port" ] || [ -z "$admin" ] || return 0
    kill -0 "$server" 2>/dev/null || break
    sleep 0.1
  done
  fail "the server becomes ready" "$(tail -n 30 "$log")"
  finish
}

# free_port: one of those that the kernel gives to nobody who asks for any, so that none is taken meanwhile.
free_port() {
  python3 -c '
import random, socket
while True:
    port = random.randrange(12000, 32000)
    with socket.socket() as s:
        try:
            s.bind(("127.0.0.1", port))
        except OSError:
            continue
    print(port)
    break'
}

# stop NAME
stop() {
  kill -TERM "$server"
  wait "$server"
  expect "$1: SIGTERM ends it with 0" 0 $?
  server=
}

# answers FILE N TOKENS [STEP LONGEST]: N requests at the same time; their choices in order. Prompt
# i repeats two words i * STEP % LONGEST times. `salt`: what their cache_salt is; the same finds what was kept.
answers() {
  python3 - "$port" "$2" "$3" "${4:-7}" "${5:-40}" "$(basename "$model" .gguf)" "${salt:-}" >"$1" <<'PYTHON'
import concurrent.futures, json, sys, urllib.request
port, count, tokens, step, longest = map(int, sys.argv[1:6])
def ask(i):
    body = {"model": sys.argv[6], "prompt": f"Once upon a time number {i} " + "went on " * (i * step % longest),
            "max_tokens": tokens, "ignore_eos": True, "seed": i, "temperature": 0.8, "logprobs": 1}
    body |= ({}, {"ignore_eos": False, "min_tokens": tokens}, {"logit_bias": {"28": -100, "35": 2, "30": 1e-40}},
             {"frequency_penalty": 0.5, "presence_penalty": -0.3, "repetition_penalty": 1.1, "min_p": 0.01})[i % 4]
    if sys.argv[7]:
        body["cache_salt"] = sys.argv[7]
    request = urllib.request.Request(f"http://127.0.0.1:{port}/v1/completions", json.dumps(body).encode(),
                                     {"content-type": "application/json"})
    try:
        with urllib.request.urlopen(request, timeout=600) as reply:
            return json.load(reply)["choices"]
    except urllib.error.HTTPError as e:
        return f"{e.code} {e.read().decode()}"
with concurrent.futures.ThreadPoolExecutor(count) as pool:
    for choices in pool.map(ask, range(count)):
        print(json.dumps(choices, sort_keys=True))
PYTHON
}

# status: as JSON; asked again where the service or a worker of it stood still for too long to answer.
status() {
  local page
  for _ in $(seq 60); do
    page=$("$lamella" status --admin "127.0.0.1:$admin" --json 2>/dev/null)
    case $page in *'"workers"'*) break ;; esac
    sleep 0.1
  done
  printf '%s\n' "$page"
}
# metric NAME [LABEL="VALUE"]: of all its series together, or of those with that label.
metric() {
  python3 - "$admin" "$1" "${2:-}" <<'PYTHON'
import sys, urllib.request
page = urllib.request.urlopen(f"http://127.0.0.1:{sys.argv[1]}/metrics", timeout=120).read().decode()
print(int(sum(float(x.split()[-1]) for x in page.splitlines()
              if x.split("{")[0].split()[0] == sys.argv[2] and sys.argv[3] in x)))
PYTHON
}
# pid_of SEAT
pid_of() { status | json "[w['pid'] for w in x['workers'] if w['seat'] == '$1'][0]"; }
# part PART: the seat that has it, as "shard 1" or "parity".
part() { status | json "[w['seat'] for w in x['workers'] if w['part'] == '$1'][0]"; }
children() { cat "/proc/$server/task/"*/children | tr -s ' \n' ' '; }
# gone PIDS...: none of them runs.
gone() { for pid in "$@"; do [ ! -e "/proc/$pid" ] || return 1; done; }
# sits_again SEAT INCARNATION: somebody does, as that incarnation or a later one.
sits_again() {
  for _ in $(seq 1200); do
    again=$(status | json "any(w['incarnation'] >= $2 and w['state'] == 'live' for w in x['workers'] if w['seat'] == '$1')")
    [ "$again" != True ] || return 0
    sleep 0.1
  done
  return 1
}
# none_in_use NAME: no slot stays in use; the canary holds one at times.
none_in_use() {
  for _ in $(seq 1000); do
    used=$(status | json 'sum(p["slots"]["used"] for p in x["pools"])')
    [ "$used" != 0 ] || break
    sleep 0.02
  done
  expect "$1: no slot stays in use" 0 "$used"
}

# recovered METHOD: requests that went on by it after a loss: parity or recompute.
recovered() { metric lamella_requests_recovered_total "method=\"$1\""; }
# decoding FILE N TOKENS [STEP LONGEST]: asks as `answers` does, as $client, and comes back while they decode: when they
# have $begun tokens each on average, and not nearly all. Who stands still until they end asks them once more.
begun=24
decoding() {
  local before count=$2 tokens=$3
  for _ in 1 2 3 4 5; do
    before=$(metric vllm:generation_tokens_total)
    answers "$@" &
    client=$!
    decoded=0
    while [ $decoded -lt $((count * begun)) ] && kill -0 "$client" 2>/dev/null; do
      decoded=$(($(metric vllm:generation_tokens_total) - before))
    done
    [ $decoded -lt $((count * begun)) ] || [ $decoded -ge $((count * (tokens - 6))) ] || return 0
    wait "$client"
  done
  fail "$count requests decode" "$decoded of $count times $tokens tokens"
}
# killed NAME GOLDEN "N TOKENS [STEP LONGEST]" SEATS...: those are killed at once while such requests decode. The tokens
# are those in GOLDEN; `parity` and `computed` say by which way the requests went on.
killed() {
  local name=$1 golden=$2 requests victims=() before_parity before_computed
  read -r -a requests <<<"$3"
  shift 3
  for seat in "$@"; do victims+=("$(pid_of "$seat")"); done
  before_parity=$(recovered parity)
  before_computed=$(recovered recompute)
  decoding killed.txt "${requests[@]}"
  kill -KILL "${victims[@]}"
  wait "$client"
  cmp -s "$golden" killed.txt
  expect "$name: the same tokens" 0 $?
  parity=$(($(recovered parity) - before_parity))
  computed=$(($(recovered recompute) - before_computed))
  for seat in "$@"; do
    sits_again "$seat" 1
    expect "$name: somebody sits in $seat again" 0 $?
  done
}

# chaos NAME INJURIES WORDS...: a run that must pass with at least so many injuries.
chaos() {
  local name=$1 least=$2 code
  shift 2
  "$lamella" chaos "$@" --url "http://127.0.0.1:$port" --admin "127.0.0.1:$admin" --streams 8 >page
  code=$?
  expect "$name: nothing is lost, wrong or said twice" 0 $code
  [ $code = 0 ] || { cat page; grep -v request= log | tail -n 40; }
  expect "$name: at least $least injuries" 1 "$(tail -n 1 page | json "int(x['injected'] >= $least)")"
  tail -n 1 page
}
