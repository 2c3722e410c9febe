#!/usr/bin/env bash
# Standard error of a service and its workers is a pipe that nobody reads, at the level of most lines and under load:
# requests and probes are answered, dropped lines are counted, and the service ends when it is told to. Then a full disk.
#
# usage: tests/process/log_test.sh LAMELLA WRITE_TINY_MODEL SOURCE
set -uo pipefail
. "$(dirname "$0")/tiny_service.sh"

for sink in pipe full; do
  port=$(free_port)
  admin=$(free_port)
  python3 "$source/tests/process/unread.py" "$sink" "$port" "$admin" "$lamella" serve --listen "127.0.0.1:$port" \
    --set "admin.listen=127.0.0.1:$admin" "${patient[@]}" "${tiny[@]}" --set log.level=trace \
    --set pools.attention.placement=local >"said.$sink"
  expect "$sink: the client comes to its end" 0 $?
  cat "said.$sink"
  of() { json "$1" <"said.$sink"; }
  expect "$sink: requests are answered" "[200]" "$(of 'x["answers"]')"
  expect "$sink: probes are answered" "[200]" "$(of 'x["probes"]')"
  expect "$sink: lines that were dropped are counted" True "$(of 'x["dropped"] > 0')"
  expect "$sink: it ends in order" 0 "$(of 'x["ended"]')"
done
finish
