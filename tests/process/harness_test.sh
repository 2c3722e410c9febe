#!/usr/bin/env bash
# A service whose every process is a host of its own (network namespaces, two networks, mutual TLS), under
# open-loop load: workers are killed, stopped, paused and cut off, bytes of their links and of clients' are
# delayed, flipped and lost; then harness/checker.py compares everything that was written with an undisturbed run.
#
# usage: tests/process/harness_test.sh LAMELLA WRITE_TINY_MODEL [WORDS...]   (exit code 77: skipped, with the reason)
# Words: --seed N, --random SECONDS, --gray, --scaling, --partition P, --schedule FILE, --rate R, --keep FOLDER
set -uo pipefail
here=$(cd "$(dirname "$0")" && pwd)
. "$here/namespaces.sh"
[ $# -ge 2 ] || { sed -n '2,8p' "$0" >&2; exit 2; }
export PATH=$PATH:/usr/sbin:/sbin
enter_namespaces "$(realpath "$0")" "$(realpath "$1")" "$(realpath "$2")" "${@:3}"

work=/run/lamella
mkdir "$work"
for name in $(compgen -e LAMELLA_); do unset "$name"; done
export XDG_CONFIG_HOME=$work/config PYTHONDONTWRITEBYTECODE=1
started_in=$PWD
cd "$work" || exit 1
hosts=(gateway model-0 model-1 attention-0 attention-1 attention-2 attention-3 attention-4 prefill-0 model-2 prefill-1 far-0 far-1)
make_certificates "${hosts[@]}"
"$2" tiny.gguf 2048 || exit 1
words=()
for word in "${@:3}"; do
  case $word in --*|[0-9]*|/*|heads|requests|bare|cells) words+=("$word") ;; *) words+=("$started_in/$word") ;; esac
done
exec python3 "$here/harness/run.py" "$1" "$work/tiny.gguf" "${words[@]}"
