#!/usr/bin/env bash
# Tokens/s of a full batch in which every sequence is held to a schema, as a share of those of free ones, with the default
# model in one process (schema_bench.py, whose JSON it prints).
#
# usage: tests/process/schema_bench.sh LAMELLA [--rounds N] [--batch N] [--tokens N]
#   Exit code 77: skipped, no default model
set -uo pipefail
words=("${@:2}")
here=$(cd "$(dirname "$0")" && pwd)
. "$here/service.sh" 1 "${1:?$(sed -n 5,6p "$0")}"

serve log
python3 "$here/schema_bench.py" "$port" "${words[@]}"
stop schema
finish
