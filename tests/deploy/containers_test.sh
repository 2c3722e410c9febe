#!/usr/bin/env bash
# Containers without an engine: what deploy/Dockerfile puts into the image suffices for the program, and the services of
# deploy/compose.yaml and deploy/kubernetes, started as they are written, answer, restart and end.
#
# usage: tests/deploy/containers_test.sh LAMELLA WRITE_TINY_MODEL SOURCE   (exit code 77: skipped, with the reason)
set -uo pipefail
here=$(cd "$(dirname "$0")" && pwd)
. "$here/../process/namespaces.sh"
[ $# = 3 ] || { sed -n '2,5p' "$0" >&2; exit 2; }
export PATH=$PATH:/usr/sbin:/sbin

if [ "${LAMELLA_TEST_INSIDE:-}" != yes ]; then
  [ "$(id -u)" = 0 ] || skip "containers get another user, which takes root"
  for tool in dpkg-query ldd readelf setpriv nsenter mount chroot; do
    command -v "$tool" >/dev/null || skip "$tool is missing (packages: dpkg libc-bin binutils util-linux coreutils)"
  done
  . "$here/python.sh"
  export PYTHON
fi
for name in $(compgen -e LAMELLA_ | grep -v LAMELLA_TEST_INSIDE); do unset "$name"; done
enter_namespaces "$0" "$(realpath "$1")" "$(realpath "$2")" "$(realpath "$3")"
ip link set lo up
exec "$PYTHON" "$here/clusters.py" "$@"
