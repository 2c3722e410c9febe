#!/usr/bin/env bash
# What an installed program has to do where nothing but its package is there; the default model lies beside this file.
#
# usage: package_answers.sh PROGRAM
set -euo pipefail
program=$1
model=$(cd "$(dirname "$0")" && pwd)/SmolLM2-135M-Instruct.Q4_1.gguf

"$program" --version
"$program" doctor
# Data that lies beside it: a trace by its name.
"$program" simulate --model LLaMA3-70B --trace azure_conv_2023 >/dev/null

work=$(mktemp -d)
"$program" serve --model "$model" --set http.listen=127.0.0.1:0 --set admin.listen=127.0.0.1:0 --set log.level=warn \
  2>"$work/log" &
server=$!
trap 'kill "$server" 2>/dev/null || true; rm -rf "$work"' EXIT
url=
while [ -z "$url" ]; do
  kill -0 "$server" 2>/dev/null || { echo "the server ended:"; cat "$work/log"; exit 1; }
  sleep 0.1
  url=$(sed -n 's|^ *API *\(http://.*\)/v1$|\1|p' "$work/log")
done
"$program" chat --url "$url" --temperature 0 --once "What is the capital of France? Answer in one sentence." \
  | tee "$work/answer"
grep -q Paris "$work/answer" || { echo "there is no answer"; exit 1; }
kill -TERM "$server"
wait "$server"
echo "$program answers"
