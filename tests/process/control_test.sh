#!/usr/bin/env bash
# The control port of the real program against wrong workers, garbage and slow bytes.
#
# usage: tests/process/control_test.sh LAMELLA   (exit code 77: skipped, the default model is missing)
set -uo pipefail
. "$(dirname "$0")/service.sh" 1 "$@"

openssl rand -hex 32 >secret
openssl rand -hex 32 >other
chmod 0400 secret other
port=$(free_port)
join=127.0.0.1:$port
dead=3 # who stands still with the machine is not lost

# start_server LOG WORDS...: remote workers; returns when the control port listens.
start_server() {
  local log=$1
  shift
  : >"$log"
  (ulimit -n "${descriptors:-1024}" && exec "$lamella" serve --listen 127.0.0.1:0 --set admin.listen=127.0.0.1:0 --set "control.listen=$join" \
    --set control.secret_file="$work/secret" --set pools.model.placement=remote \
    --set pools.attention.placement=remote --set pools.model.threads=1 \
    --set pools.attention.threads=1 --set control.dead_seconds=$dead "$@" 2>"$log") &
  server=$!
  for _ in $(seq 3000); do
    grep -q 'control listening' "$log" && return 0
    kill -0 "$server" 2>/dev/null || break
    sleep 0.1
  done
  fail "the control port listens" "$(cat "$log")"
  finish
}
ready() {
  for _ in $(seq 3000); do
    api=$(sed -n 's|^ *API *http://127.0.0.1:\([0-9]*\)/v1$|\1|p' "$1")
    [ -z "$api" ] || return 0
    sleep 0.1
  done
  fail "the service becomes ready" "$(cat "$1" workers.log)"
  finish
}
# memory: the most that the service has ever held.
memory() { sed -n 's/^VmHWM:[^0-9]*\([0-9]*\) kB/\1/p' "/proc/$server/status"; }

# refused NAME CODE PART... -- WORDS...: a worker ends with that code and says each part.
refused() {
  local name=$1 code=$2 parts=() got
  shift 2
  while [ "$1" != -- ]; do parts+=("$1"); shift; done
  shift
  case " $* " in *" --dead-seconds "*) ;; *) set -- "$@" --dead-seconds $dead ;; esac
  got=$(timeout 600 "$lamella" worker "$@" 2>&1 </dev/null)
  expect "$name: exit code" "$code" $?
  for part in "${parts[@]}"; do contains "$name: says '$part'" "$part" "$got"; done
  lacks "$name: no stray exception" "terminate called" "$got"
}

refused "no such role" 2 "--role" -- --role gateway --join "$join" --secret-file secret
refused "no address" 2 "HOST:PORT" -- --role model --join 127.0.0.1 --secret-file secret
refused "no secret file" 77 "No such file" -- --role model --join "$join" --secret-file none
chmod 0444 other
refused "a secret everybody can read" 77 "chmod 0400" -- --role model --join "$join" --secret-file other
chmod 0400 other
refused "another host without TLS" 78 "mutual TLS is not configured" -- \
  --role model --join 10.255.255.1:7000 --secret-file secret
refused "links on another host's address" 78 "--listen: 192.0.2.1:0" "address of this host" -- \
  --role model --join "$join" --secret-file secret --listen 192.0.2.1:0
refused "no such device" 2 "--device" "auto, host or cuda:N" -- \
  --role model --join "$join" --secret-file secret --device gpu
refused "a device that is not there" 69 "--device: " "lamella doctor" -- \
  --role model --join "$join" --secret-file secret --device cuda:999
refused "no heartbeats" 2 "--heartbeat-seconds" -- \
  --role model --join "$join" --secret-file secret --heartbeat-seconds 0

start_server server.log
refused "the wrong secret" 77 "wrong secret" -- --role model --join "$join" --secret-file other
contains "the service says so, too" 'reason=\"wrong secret\"' "$(cat server.log)"
refused "other heartbeats" 69 "100 and 3000" "100 and 2000" -- \
  --role model --join "$join" --secret-file secret --dead-seconds 2
head -c 1000000 "$model" >cut.gguf
refused "a damaged model" 69 "cut.gguf" -- \
  --role model --join "$join" --secret-file secret --model cut.gguf
refused "no prefill workers wanted" 69 "accepts no worker processes for the pool 'prefill'" -- \
  --role prefill --join "$join" --secret-file secret

# Workers that are killed while they join or load.
for i in 1 2 3; do
  "$lamella" worker --role model --join "$join" --secret-file secret --dead-seconds $dead 2>>killed.log &
  victim=$!
  sleep "0.0$i"
  kill -KILL "$victim"
  wait "$victim" 2>/dev/null
done

# Garbage, slow bytes and silence: what comes before a proof reaches no actor, costs no memory, and ends.
# harass PORT: prints how many of those that said nothing, or half of it, were sent away.
harass() {
  python3 - "$1" <<'PYTHON'
import random, socket, sys, time
port = int(sys.argv[1])
seed = random.randrange(1 << 32)
print("seed", seed, file=sys.stderr)
rng = random.Random(seed)
def reach():
    s = socket.create_connection(("127.0.0.1", port))
    s.settimeout(0.05)
    return s
# A header of CAF's protocol for each of its operations: a payload of nearly 4 GiB follows.
headers = [bytes([0, 0, 0, kind]) + b"\xff\xff\xff\xf0" + bytes(24) for kind in range(8)]
for i in range(300):
    s = reach()
    data = [b"GET / HTTP/1.1\r\nhost: x\r\n\r\n", bytes(4096), rng.randbytes(4096),
            b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + rng.randbytes(512), b"\0", *headers][i % 13]
    try:
        s.sendall(data)
        s.recv(65536)
    except OSError:
        pass
    s.close()
# More of them at once than the service has descriptors; the slow ones send the first word of a worker, byte by byte.
silent, slow = [reach() for _ in range(300)], [reach() for _ in range(20)]
gone, end = 0, time.monotonic() + 240
for at in range(4):
    for s in slow:
        try:
            s.sendall(b"TGML"[at:at + 1])
        except OSError:
            pass
    time.sleep(0.2)
for s in silent + slow:
    s.settimeout(max(0.1, end - time.monotonic()))
    try:
        gone += s.recv(1) == b""
    except ConnectionError:
        gone += 1
    except OSError:
        pass
print(gone)
PYTHON
}
before=$(memory)
expect "strangers who do not prove themselves are sent away" 320 "$(harass "$port")"
after=$(memory)
expect "they never cost 16 MiB, also where their header names 4 GiB" 1 $((after - before < 16384))
expect "their lines in the log are few" 1 $(($(grep -c 'control connection refused' server.log) < 400))
kill -0 "$server"
expect "and they do not end the service" 0 $?

for role in model attention; do
  "$lamella" worker --role "$role" --join "$join" --secret-file secret --dead-seconds $dead --rejoin-seconds 0 2>>workers.log &
  workers+=($!)
done
ready server.log
refused "a full pool" 69 "the pool 'model' is full: 1 of 1" -- \
  --role model --join "$join" --secret-file secret
expect "after all of that it serves" 200 "$(curl -sS -o reply -w '%{http_code}' -H 'content-type: application/json' \
  -d '{"model":"SmolLM2-135M-Instruct.Q4_1","prompt":"x","max_tokens":3}' "http://127.0.0.1:$api/v1/completions")"

got=$("$lamella" serve --listen 127.0.0.1:0 --set admin.listen=127.0.0.1:0 --set "control.listen=$join" \
  --set control.secret_file="$work/secret" --set pools.attention.placement=remote 2>&1)
expect "a control port in use: exit code" 69 $?
contains "a control port in use is named" "$join" "$got"

# A worker that is stopped (not killed) is declared dead in time.
kill -STOP "${workers[1]}"
for _ in $(seq 1200); do
  grep -q 'worker lost seat=attention/0' server.log && break
  sleep 0.1
done
contains "a worker that is silent is lost" 'worker lost seat=attention/0' "$(cat server.log)"
kill -CONT "${workers[1]}"
for _ in $(seq 1200); do
  [ "$(grep -c 'epoch open' server.log)" -ge 2 ] && break
  sleep 0.1
done
contains "it wakes up and joins as the next incarnation" 'seat=attention/0 incarnation=2' "$(cat server.log)"

kill -TERM "$server"
wait "$server"
expect "SIGTERM ends the service with 0" 0 $?
server=
for pid in "${workers[@]}"; do kill -TERM "$pid"; wait "$pid"; expect "SIGTERM ends a worker with 0" 0 $?; done
workers=()

# Mutual TLS: a worker with a certificate of another authority, one without any, then the right ones.
for ca in ca wrong-ca; do
  openssl req -x509 -newkey rsa:2048 -nodes -days 2 -subj "/CN=$ca" -keyout "$ca.key" -out "$ca.pem" 2>/dev/null
done
certify() { # NAME CA
  openssl req -newkey rsa:2048 -nodes -subj "/CN=$1" -keyout "$1.key" -out "$1.csr" 2>/dev/null
  openssl x509 -req -in "$1.csr" -CA "$2.pem" -CAkey "$2.key" -CAcreateserial -days 2 -out "$1.pem" 2>/dev/null
}
certify service ca
certify worker ca
certify stranger wrong-ca
: >workers.log
descriptors=128 # CAF read its certificates anew for each connection, and ended the process where it could not
start_server tls.log --set control.tls_certificate="$work/service.pem" \
  --set control.tls_key="$work/service.key" --set control.tls_ca="$work/ca.pem"
# says NAME PART WORDS...: a worker that tries for ever says so.
says() {
  local name=$1 part=$2
  shift 2
  : >tries.log
  "$lamella" worker --role model --join "$join" --secret-file secret --dead-seconds $dead "$@" 2>tries.log &
  workers=($!)
  for _ in $(seq 3000); do
    grep -q "$part" tries.log && break
    sleep 0.1
  done
  contains "$name: says so" "$part" "$(cat tries.log)"
  kill -KILL "${workers[0]}"
  wait "${workers[0]}" 2>/dev/null
  workers=()
}
says "the wrong authority" "TLS handshake failed" \
  --tls-certificate stranger.pem --tls-key stranger.key --tls-ca wrong-ca.pem
says "no certificate" "cannot join $join"
lacks "neither gets in" "worker joined" "$(cat tls.log)"
contains "the service says of the one without TLS what differs" "the service has mutual TLS, the worker no TLS" "$(cat tls.log)"
expect "with TLS, strangers who do not prove themselves are sent away" 320 "$(harass "$port")"
kill -0 "$server"
expect "and they do not end the service, which has 128 descriptors" 0 $?
for role in model attention; do
  "$lamella" worker --role "$role" --join "$join" --secret-file secret --dead-seconds $dead --tls-certificate worker.pem \
    --tls-key worker.key --tls-ca ca.pem 2>>workers.log &
  workers+=($!)
done
ready tls.log
expect "the right ones serve" 200 "$(curl -sS -o reply -w '%{http_code}' -H 'content-type: application/json' \
  -d '{"model":"SmolLM2-135M-Instruct.Q4_1","prompt":"x","max_tokens":3}' "http://127.0.0.1:$api/v1/completions")"
kill -TERM "$server" "${workers[@]}"
wait "$server"
expect "SIGTERM ends the service with 0" 0 $?
server=
finish
