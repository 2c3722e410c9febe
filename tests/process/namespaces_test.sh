#!/usr/bin/env bash
# A service over three hosts, each of them namespaces of this one: a gateway with a prefill worker, and
# two hosts whose workers, two replicas and three shards, join it with mutual TLS. They give the tokens
# of a single process, also while a host's cable is pulled.
#
# usage: tests/process/namespaces_test.sh LAMELLA   (exit code 77: skipped, with the reason)
set -uo pipefail
here=$(cd "$(dirname "$0")" && pwd)
. "$here/../client/check.sh"
. "$here/namespaces.sh"
[ $# = 1 ] || { sed -n '2,6p' "$0" >&2; exit 2; }
lamella=$(realpath "$1")
export PATH=$PATH:/usr/sbin:/sbin

if [ "${LAMELLA_TEST_INSIDE:-}" != yes ]; then
  [ -f "${XDG_CACHE_HOME:-$HOME/.cache}/lamella/models/SmolLM2-135M-Instruct.Q4_1.gguf" ] ||
    skip "the default model is missing; run '$lamella model fetch'"
fi
enter_namespaces "$0" "$lamella"

hosts=(gateway left right)
gateway=10.77.0.1 left=10.77.0.2 right=10.77.0.3
work=/run/lamella
mkdir "$work"
cd "$work" || exit 1
for name in $(compgen -e LAMELLA_); do unset "$name"; done
export XDG_CONFIG_HOME=$work/config

# One bridge, a cable to each host. What tells hosts apart are names and boot ids.
ip link set lo up
ip link add bridge0 type bridge
ip link set bridge0 up
for host in "${hosts[@]}"; do
  ip netns add "$host"
  ip link add "to-$host" type veth peer name eth0 netns "$host"
  ip link set "to-$host" master bridge0 up
  ip -n "$host" address add "${!host}/24" dev eth0
  ip -n "$host" link set eth0 up
  ip -n "$host" link set lo up
  cat /proc/sys/kernel/random/uuid >"$work/boot-$host"
  mkdir "/run/tmp-$host"
done

# start HOST LOG WORDS...: a process of that host; its id in $pid.
as_host='hostname "$0" && mount --bind "/run/lamella/boot-$0" /proc/sys/kernel/random/boot_id &&
  TMPDIR=/run/tmp-$0 exec "$@"'
start() {
  ip netns exec "$1" unshare --uts bash -c "$as_host" "$1" "${@:3}" </dev/null 2>>"$2" &
  pid=$!
}

# until_true SECONDS COMMAND...: whether the command succeeds within that time.
until_true() {
  local end=$((SECONDS + $1))
  shift
  until "$@"; do
    [ "$SECONDS" -lt "$end" ] || return 1
    sleep 0.1
  done
}

# serve LOG WORDS...: a server of the gateway's host, as $server.
serve() {
  local log=$1
  shift
  : >"$log"
  start gateway "$log" "$lamella" serve --listen 127.0.0.1:8000 --set admin.listen=127.0.0.1:8001 "$@"
  server=$pid
}
ready() { grep -q '^ *API *http' "$1"; }
must_be_ready() {
  until_true 600 ready "$1" && return
  fail "$1: the service becomes ready" "$(tail -n 20 "$1" ./*-*.log 2>/dev/null)"
  finish
}

# answers FILE: 32 greedy requests at the same time; their choices in order.
answers() {
  ip netns exec gateway python3 - >"$1" <<'PYTHON'
import concurrent.futures, json, urllib.error, urllib.request
def ask(i):
    body = {"model": "SmolLM2-135M-Instruct.Q4_1", "prompt": f"Chapter {i}. " + "It went on. " * (i * 5 % 18),
            "max_tokens": 48, "ignore_eos": True, "temperature": 0, "logprobs": 1}
    request = urllib.request.Request("http://127.0.0.1:8000/v1/completions", json.dumps(body).encode(),
                                     {"content-type": "application/json"})
    try:
        with urllib.request.urlopen(request, timeout=600) as reply:
            return json.load(reply)["choices"]
    except urllib.error.HTTPError as e:
        return f"{e.code} {e.read().decode()}"
with concurrent.futures.ThreadPoolExecutor(32) as pool:
    for choices in pool.map(ask, range(32)):
        print(json.dumps(choices, sort_keys=True))
PYTHON
}
# Asked again where the service or a worker of it stood still for too long to answer.
status() {
  local page
  for _ in $(seq 60); do
    page=$(ip netns exec gateway "$lamella" status --admin 127.0.0.1:8001 --json 2>/dev/null)
    case $page in *'"workers"'*) break ;; esac
    sleep 0.1
  done
  printf '%s\n' "$page"
}
# received HOST: bytes that came to it over its cable.
received() { ip -n "$1" -s -j link show eth0 | json 'x[0]["stats64"]["rx"]["bytes"]'; }

serve single.log
must_be_ready single.log
answers single.txt
expect "32 answers of a single process" 32 "$(grep -c logprobs single.txt)"
kill -TERM "$server"
wait "$server"
expect "a single process: SIGTERM ends it with 0" 0 $?

make_certificates "${hosts[@]}"

# Machines that run tests stall for longer than a service would accept.
dead=8
serve service.log --set control.dead_seconds=$dead --set recovery.max_pause_seconds=60 --set pools.model.replicas=2 --set pools.attention.members=3 \
  --set pools.model.placement=remote --set pools.attention.placement=remote \
  --set pools.prefill.placement=local --set pools.prefill.threads=1 \
  --set pools.model.threads=1 --set pools.attention.threads=1 --set "control.listen=$gateway:7000" \
  --set control.secret_file=secret --set control.tls_certificate=gateway.pem \
  --set control.tls_key=gateway.key --set control.tls_ca=ca.pem --set net.listen=0.0.0.0:0
until_true 600 grep -q 'control listening' service.log ||
  fail "the control port listens" "$(cat service.log)"

# work HOST ROLE SEAT; of left, on all addresses: others reach it by the one that it reaches the service by.
workers=()
work() {
  local listen=${!1}
  [ "$1" != left ] || listen=0.0.0.0
  start "$1" "$1-$2-$3.log" "$lamella" worker --role "$2" --seat "$3" --join "$gateway:7000" \
    --dead-seconds $dead --rejoin-seconds 0 --secret-file secret --listen "$listen:0" --tls-certificate "$1.pem" --tls-key "$1.key" --tls-ca ca.pem
  workers+=("$pid")
}
# Each host has seats of both roles: some links stay on a host, others cross the bridge.
work left model 0
work left attention 0
work right model 1
work right attention 1
work right attention 2
must_be_ready service.log
answers remote.txt
cmp -s single.txt remote.txt
expect "three hosts: 32 concurrent requests give the single process's tokens" 0 $?
status >status.json
seats="attention/0@left attention/1@right attention/2@right model/0@left model/1@right prefill/0@gateway"
seats_of() { json '" ".join(sorted(w["seat"] + "@" + w["host"] for w in x["workers"] if w["state"] == "live"))'; }
expect "every worker sits on its host" "$seats" "$(seats_of <status.json)"
expect "links of one host are shared memory, others TCP" \
  "model/0>attention/0 shm model/0>attention/1 tcp model/0>attention/2 tcp model/1>attention/0 tcp model/1>attention/1 shm model/1>attention/2 shm" \
  "$(json '" ".join(sorted(w["seat"] + ">" + p["seat"] + " " + p["transport"] for w in x["workers"]
    for p in w["peers"] if w["role"] == "model"))' <status.json)"

expect "the prefill worker, a child of the gateway that listens on all addresses, reaches every shard" \
  "attention/0 tcp attention/1 tcp attention/2 tcp" \
  "$(json '" ".join(sorted(p["seat"] + " " + p["transport"] for w in x["workers"] for p in w["peers"]
    if w["role"] == "prefill"))' <status.json)"
contains "a worker says which way it took, and why" 'tier=tcp reason=' "$(grep 'link up' left-model-0.log)"
contains "and why another one" 'same host' "$(grep 'link up' left-model-0.log)"

expect "the round trip of every link is known" True \
  "$(json 'all(0 < p["rtt_us"] < 1e6 for w in x["workers"] for p in w["peers"])' <status.json)"
# Payload from other hosts to right.
sent_of() {
  json 'sum(p["bytes"] for w in x["workers"] for p in w["peers"] if w["host"] != "right"
    and p["seat"] in [v["seat"] for v in x["workers"] if v["host"] == "right"])'
}
sent=$(sent_of <status.json)
got=$(received right)
# Headers of frames and packets, and the control plane, come on top.
expect "what left and the gateway say they sent, $sent bytes, came to right over its cable, $got bytes" 1 \
  $((sent > 1000000 && got >= sent && got < sent * 5 / 4 + 1000000))

# The cable of a host is pulled while requests run, and put in again when its workers are missed.
running=0
for _ in 1 2 3 4 5; do # who stands still while they run asks them once more
  answers cut.txt &
  client=$!
  while [ "$running" -lt 4 ] && kill -0 "$client" 2>/dev/null; do
    running=$(status | json 'x["requests"]["running"]')
  done
  [ "$running" -lt 4 ] || break
  wait "$client"
done
expect "the cable is pulled while requests run" 1 $((running >= 4))
ip link set to-right down
its_workers_lost() {
  for seat in model/1 attention/1 attention/2; do
    grep -q "worker lost seat=$seat " service.log || return 1
  done
}
until_true 240 its_workers_lost
expect "its three workers are lost" 0 $?
ip link set to-right up
wait "$client"
cmp -s single.txt cut.txt
expect "a pulled cable: the same tokens" 0 $?
all_sit() { [ "$(status | seats_of)" = "$seats" ]; }
until_true 480 all_sit # a service that has all shards goes on without a replica
expect "its workers sit again" "$seats" "$(status | seats_of)"
expect "as other incarnations" True \
  "$(status | json 'all(w["incarnation"] > 1 for w in x["workers"] if w["host"] == "right")')"

status >status.json
if [ "$(json 'all(w["incarnation"] == 1 for w in x["workers"] if w["host"] == "left")' <status.json)" = True ]; then
  # Lost KV was made again from the first token on.
  expect "what they have sent goes on counting in the next epoch" 1 \
    $(($(sent_of <status.json) > sent * 3 / 2))
else
  echo "note: the machine stalled for more than $dead s, so left has joined anew and counts from 0"
fi

processes() { cat /proc/[0-9]*/comm | grep -c '^lamella$'; }
sockets() { find /run/tmp-* -name 'lamella-*' | wc -l; }
expect "the service and six workers" 7 "$(processes)"
expect "with a socket each" 1 $(($(sockets) >= 7))

kill -TERM "$server"
wait "$server"
expect "SIGTERM ends the service with 0" 0 $?
for pid in "${workers[@]}"; do
  kill -TERM "$pid"
  wait "$pid"
  expect "SIGTERM ends a worker with 0" 0 $?
done
expect "no process is left" 0 "$(processes)"
expect "no socket is left" 0 "$(sockets)"
finish
