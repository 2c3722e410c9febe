#!/usr/bin/env bash
# The manifests of deploy/kubernetes: whether the API takes them, whether their parts fit each other, and whether what
# they tell the program is what it knows (manifests.py).
#
# usage: tests/deploy/manifests_test.sh LAMELLA WRITE_TINY_MODEL SOURCE   (exit code 77: skipped, with the reason)
set -uo pipefail
here=$(cd "$(dirname "$0")" && pwd)
[ $# = 3 ] || { sed -n '2,5p' "$0" >&2; exit 2; }
. "$here/../lacks.sh"
command -v openssl >/dev/null || lacks openssl openssl
[ "${TEST_PACKAGES:-}" != installed ] || python3 -c 'import ensurepip' 2>/dev/null || lacks python3-venv "python3 -m venv"

# An environment of its own with the schemas; without it they are not compared with anything.
venv=$(dirname "$1")/manifests_venv
if ! cmp -s "$here/requirements.txt" "$venv/installed.txt"; then
  rm -rf "$venv"
  python3 -m venv "$venv" && "$venv/bin/pip" install --quiet --disable-pip-version-check --retries 1 --timeout 20 \
    -r "$here/requirements.txt" && cp "$here/requirements.txt" "$venv/installed.txt"
fi
PYTHON=$venv/bin/python
[ -e "$venv/installed.txt" ] || . "$here/python.sh"
exec "$PYTHON" "$here/manifests.py" "$1" "$(realpath "$2")" "$3"
