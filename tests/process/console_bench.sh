#!/usr/bin/env bash
# How much slower a service decodes while consoles look at it, and how much more processor time a token costs it
# (consoles.py, whose JSON it prints), with the default model in one process. The consoles run on the same processors.
#
# usage: tests/process/console_bench.sh LAMELLA [ARGUMENTS OF consoles.py]
#   Exit code 77: skipped, no default model
set -uo pipefail
here=$(cd "$(dirname "$0")" && pwd)
. "$here/service.sh" 1 "${1:?$(sed -n 5,6p "$0")}"
shift

serve log
python3 "$here/consoles.py" "$port" "$admin" "$server" "$@"
expect "the streams and the consoles were answered" 0 $?
stop "the service"
finish
