#!/usr/bin/env bash
# Strangers on every port of a service of seven processes, its own and its workers': scans, garbage, half
# conversations, slow bytes, peers that ask and never read. Nothing ends, nothing grows, requests are answered.
#
# usage: tests/process/strangers_test.sh LAMELLA SOURCE   (exit code 77: skipped, no default model)
set -uo pipefail
here=$(cd "$(dirname "$0")" && pwd)
. "$here/service.sh" 2 "$@"

ulimit -n 4096
serve log --config "$source/config/two-pools.yaml" --set net.transport=tcp
answers before.txt 4 24
pids="$server $(children)"
expect "a gateway, two replicas, three shards and a prefill worker" 7 "$(wc -w <<<"$pids")"
answers during.txt 8 48 &
client=$!
# shellcheck disable=SC2086
python3 "$here/strangers.py" $pids >cost.json
expect "the strangers come to their end" 0 $?
wait "$client"
cat cost.json
expect "they found a port of each process, and two more of the gateway" 1 "$(json 'int(len(x["ports"]) >= 9)' <cost.json)"
expect "requests were answered meanwhile" 8 "$(grep -c logprobs during.txt)"
expect "no process has ended" "$pids" "$server $(children)"
expect "their descriptors are given back" 1 "$(json 'int(x["after"]["fds"] <= x["before"]["fds"] + 8)' <cost.json)"
expect "they cost seven processes less than 96 MiB" 1 "$(json 'int(x["during"]["kb"] - x["before"]["kb"] < 98304)' <cost.json)"
answers after.txt 4 24
cmp -s before.txt after.txt
expect "the same requests give the same tokens afterwards" 0 $?
expect "no worker was lost" 0 "$(grep -c 'worker lost' log)"
stop "strangers"
gone $pids
expect "no process is left" 0 $?
finish
