#!/usr/bin/env bash
# deploy/Dockerfile, .dockerignore and deploy/compose.yaml: whether they fit the sources, each other and the program
# (files.py).
#
# usage: tests/deploy/image_test.sh LAMELLA SOURCE   (exit code 77: skipped, with the reason)
set -uo pipefail
here=$(cd "$(dirname "$0")" && pwd)
[ $# = 2 ] || { sed -n '2,5p' "$0" >&2; exit 2; }
. "$here/python.sh"
exec "$PYTHON" "$here/files.py" "$1" "$2"
