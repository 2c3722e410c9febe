#!/usr/bin/env bash
# A service on a machine of two NUMA nodes, in an emulated guest: one thread of each core computes, shards in processes are
# bound to a node each, and a process on both nodes spreads its memory over them.
#
# usage: tests/process/nodes_test.sh LAMELLA WRITE_TINY_MODEL SOURCE
set -uo pipefail
lamella=$1 write=$2 source=$3
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
"$write" "$work/tiny.gguf" 512 >/dev/null

# In the guest, with the tools of busybox's shell alone.
cat >"$work/on_nodes" <<'SH'
failed=0
expect() { # WHAT WANTED GOT
  if [ "$2" = "$3" ]; then echo "ok   $1"; else echo "FAIL $1: wanted '$2', got '$3'"; failed=1; fi
}
processors=$(lamella doctor | while read -r part state line; do
  case $line in processors:*) echo "$line" ;; esac
done)
expect "what doctor tells" "processors: 8 on 4 cores, 4 compute by default; NUMA node: 0-3; 4-7" "$processors"
lamella serve --model /bin/tiny.gguf --listen 127.0.0.1:8000 --set admin.listen=127.0.0.1:8001 --set kv.bytes=4MiB \
  --set pools.model.placement=local --set pools.attention.placement=local --set pools.attention.partition=requests \
  --set pools.attention.members=3 --set control.dead_seconds=60 2>/tmp/log &
lamella status --admin 127.0.0.1:8001 --wait 120 >/tmp/status || { cat /tmp/log; exit 1; }
# allowed NAME: where the worker of that name may run, and the policy of its memory.
allowed() {
  for process in /proc/[0-9]*; do
    case $(tr '\0' ' ' <"$process/cmdline" 2>/dev/null) in *"--name $1 "*) ;; *) continue ;; esac
    while read -r key value; do
      [ "$key" != Cpus_allowed_list: ] || echo "$value"
    done <"$process/status"
  done
}
policies() {
  for process in /proc/[0-9]*; do
    case $(tr '\0' ' ' <"$process/cmdline" 2>/dev/null) in *"--name $1 "*) ;; *) continue ;; esac
    for task in "$process"/task/*; do
      while read -r _ policy _; do
        case $policy in interleave*) echo "$policy"; return ;; esac
      done <"$task/numa_maps"
    done
  done
}
expect "the first shard is on the first node" 0-3 "$(allowed attention-0)"
expect "the second one on the second" 4-7 "$(allowed attention-1)"
expect "the third one on the first again" 0-3 "$(allowed attention-2)"
expect "the only replica is on both" 0-7 "$(allowed model-0)"
expect "and spreads its memory over them" "interleave:0-1" "$(policies model-0)"
expect "a shard does not" "" "$(policies attention-0)"
answer=$(lamella chat --once "ab" --url http://127.0.0.1:8000 --max-tokens 4 2>&1)
expect "it answers" 0 $?
exit $failed
SH
"$source/tests/rdma/guests" --nodes --limit 200 --program "$lamella" --program "$work/tiny.gguf" --program "$work/on_nodes" -- \
  "sh /bin/on_nodes" true
