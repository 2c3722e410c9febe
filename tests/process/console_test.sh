#!/usr/bin/env bash
# The console and the chat in a real browser: pages load without an error, a worker that is killed turns red and green
# again, an answer streams, and what is said stays text.
#
# usage: tests/process/console_test.sh LAMELLA WRITE_TINY_MODEL SOURCE
#
# Exit code 77 means skipped: Chromium is missing. CONSOLE_PICTURES=FOLDER keeps pictures of the pages.
set -u
. "$(dirname "${BASH_SOURCE[0]}")/../lacks.sh"
chromium=$(command -v chromium || command -v chromium-browser || command -v google-chrome) || lacks chromium Chromium
. "$(dirname "${BASH_SOURCE[0]}")/tiny_service.sh"
here=$source/tests/process

cat >model.yaml <<'YAML'
version: 1
pools:
  model: {placement: local}
  attention: {placement: local, members: 3, spares: 0}
YAML
echo key-of-an-operator >keys
chmod 600 keys
serve log --config model.yaml "${tiny[@]}" --set chaos.enabled=true \
  --set "model.name=tiny<img/src=/ui/none/onerror=document.title=1>" --set admin.api_keys_file="$work/keys"
mkdir -p "${CONSOLE_PICTURES:=$work/pictures}"
TMPDIR=$work python3 "$here/console_check.py" "$chromium" "$port" "$admin" key-of-an-operator "$CONSOLE_PICTURES" || failures=1
[ "$failures" = 0 ] || tail -n 20 log
stop "the service"
finish
