#!/usr/bin/env bash
# Large bodies beside short requests: many that cannot fit, texts that take long to cut into tokens, bodies that never
# end, and a schema that takes long to compile. Nothing ends, what is refused says so, and short requests are answered
# in a small part of the time that one of the large ones takes.
#
# usage: tests/process/bodies_test.sh LAMELLA WRITE_TINY_MODEL SOURCE
set -uo pipefail
. "$(dirname "$0")/tiny_service.sh"

ulimit -n 4096
here=$source/tests/process
ulimit -Sn 256 # a shell's own is less than http.connections_max, too
serve log "${tiny[@]}" --set limits.bodies_bytes=64MiB
ulimit -Sn 4096
expect "the service opens as many files as it may" 1 "$(curl -s "http://127.0.0.1:$admin/metrics" | grep -c '^process_max_fds 4096$')"
python3 "$here/bodies.py" "$port" "$admin" >said.json
expect "the clients come to their end" 0 $?
cat said.json
of() { json "$1" <said.json; }
expect "prompts that are too long are refused, at once or when they come again" "[400]" "$(of 'x["large"]')"
expect "each 503 says when" 0 "$(of 'x["silent"]')"
expect "texts are cut into tokens, at once or when they come again" "[200]" "$(of 'x["cut"]')"
expect "short requests are answered" "[200]" "$(of 'x["short"]')"
expect "they wait for a small part of one large text" True "$(of 'x["short_s"] < x["cut_s"] / 4')"
expect "bodies take no more memory than they may" True "$(of 'x["held"] <= 64 << 20')"
expect "and are counted where there is no room" True "$(of 'x["refused"] > 0')"
expect "their memory is given back" 0 "$(of 'x["held_after"]')"
expect "a client that leaves in the middle costs nothing" True "$(of 'x["left"]')"
expect "no actor was missed" 0 "$(grep -c 'no actor has run for' log)"
stop "bodies"
finish
