#!/usr/bin/env bash
# The systemd units of deploy/, and what the real program tells a service manager while it starts, reloads and ends.
#
# usage: tests/process/units_test.sh LAMELLA WRITE_TINY_MODEL SOURCE
set -uo pipefail
. "$(dirname "$0")/tiny_service.sh"

# What a service manager hears: one line for each message.
python3 - <<'PYTHON' &
import socket
with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as s, open("heard", "w", buffering=1) as out:
    s.bind("notify")
    while True:
        print(s.recv(65536).decode().replace("\n", " "), file=out)
PYTHON
workers+=($!)
for _ in $(seq 3000); do [ ! -S notify ] || break; sleep 0.1; done
# hears PART...: waits until they were said, in this order; sets `said`.
hears() {
  local pattern
  pattern=$(printf '%s.*' "$@")
  for _ in $(seq 3000); do
    said=$(tr '\n' '|' <heard)
    [[ $said =~ $pattern ]] && return 0
    sleep 0.1
  done
  return 1
}

export NOTIFY_SOCKET=$work/notify
serve log "${tiny[@]}" --set pools.attention.placement=local
unset NOTIFY_SOCKET
hears "STATUS=starting: weights" "STATUS=starting: warm" "READY=1 STATUS=serving on port $port"
expect "it says how it starts, and that it is ready" 0 $?
lacks "not before it is" "READY=1" "${said%%STATUS=starting: warm*}"
kill -HUP "$server"
hears "READY=1" "RELOADING=1 MONOTONIC_USEC=[0-9]+" "READY=1 STATUS=serving"
expect "it says that it reloads, and when it has" 0 $?
variables=$(tr '\0' '\n' <"/proc/$(pid_of attention/0)/environ")
contains "a worker has variables" "PATH=" "$variables"
lacks "workers do not speak for it" "NOTIFY_SOCKET" "$variables"
stop "the manager"
hears "STOPPING=1 STATUS=draining EXTEND_TIMEOUT_USEC=60000000"
expect "it says that it ends, and how long that may take" 0 $?

# A socket that is none keeps nobody from serving.
export NOTIFY_SOCKET=$work/nobody
serve log "${tiny[@]}" --set pools.attention.placement=local --set log.format=json
unset NOTIFY_SOCKET
stop "no manager"
expect "where a log is to be JSON, every line is" "" "$(python3 -c '
import json, sys
for line in sys.stdin:
    try:
        json.loads(line)["msg"]
    except ValueError:
        print(line)' <log)"

if command -v systemd-analyze >/dev/null; then
  for unit in lamella.service lamella-worker@.service; do
    sed "s|/usr/local/bin/lamella|$lamella|" "$source/deploy/$unit" >"$unit"
    said=$(systemd-analyze verify "./$unit" 2>&1)
    expect "systemd finds nothing wrong with $unit" 0 $?
    lacks "systemd has nothing to say of $unit" "lamella" "$said"
  done
else
  echo "systemd-analyze is not here: the units themselves were not checked"
fi
finish
