#!/usr/bin/env bash
# Attention cells that come, change and go by reloads while requests decode, in processes: a pool becomes cells, cells with
# workers of their own come beside others, the first ones are taken out of the file. The tokens are those of a single process.
#
# usage: tests/process/new_cells_test.sh LAMELLA WRITE_TINY_MODEL SOURCE
set -uo pipefail
. "$(dirname "$0")/tiny_service.sh"

requests="24 1000"
serve single.log "${tiny[@]}"
answers single.txt $requests
stop "a single process"

same() { # same NAME FILE
  cmp -s single.txt "$2"
  expect "$1: the same tokens" 0 $?
}
cells() { status | json '" ".join(c["name"] + "=" + str(c["members"]) for c in x["pools"][0].get("cells", []))'; }
# write MEMBERS OF THE CELLS, each a line of YAML
write() {
  printf 'version: 1\npools:\n  model: {placement: local}\n  attention:\n    placement: local\n    members: 1\n    kv_bytes: 8MiB\n' >cells.yaml
  [ $# = 0 ] || printf '    cells:\n' >>cells.yaml
  [ $# = 0 ] || printf '      %s\n' "$@" >>cells.yaml
}
reloaded() { curl -s -X POST "http://127.0.0.1:$admin/admin/reload" >page; }
# reload_until TEXT: a reload, and until the cells are as TEXT says.
reload_until() {
  reloaded
  for _ in $(seq 300); do
    [ "$(cells)" != "$1" ] || break
    sleep 0.1
  done
  expect "L-M03 after a reload: $1" "$1" "$(cells)"
}

write
serve log --config cells.yaml "${tiny[@]}"
expect "a pool without cells" "" "$(cells)"
decoding new.txt $requests
write 'main: {members: 1}' 'far: {members: 3, threads: 2, spares: 1}'
reload_until "main=1 far=3"
contains "the answer lists the members of the new cell" '"pending":["pools.attention.cells.far.members"]' "$(cat page)"
contains "and what it has of its own" 'pools.attention.cells.far.spares' "$(cat page)"
expect "L-M03 the new cell has workers of its own, and a spare" 4 \
  "$(status | json 'sum(w["role"] == "attention" and w["cell"] in ("far", "") for w in x["workers"])')"
write 'main: {members: 1}' 'far: {members: 3, threads: 2, spares: 1}' 'east: {members: 2, partition: requests}'
reload_until "main=1 far=3 east=2"
write 'far: {members: 3, threads: 2, spares: 1}' 'east: {members: 2, partition: requests}'
reload_until "main=0 far=3 east=2"
wait "$client"
same "L-M03 cells that come, and the pool that goes" new.txt
none_in_use "cells that came"
killed "L-M26 a shard of a new cell is killed" single.txt "$requests" "$(part 'shard 0')"
expect "L-M26 a spare takes its part" "main=0 far=3 east=2" "$(cells)"

# A cell without members gets other options, and new ones beside it in the same reload; one with members keeps its own.
decoding changed.txt $requests
write 'main: {members: 2, partition: requests, threads: 3}' 'far: {members: 1, threads: 4, spares: 1}' \
  'east: {members: 0, partition: requests}' 'west: {members: 1}'
reload_until "main=2 far=1 east=0 west=1"
contains "threads of a cell with members wait for a restart" '"needs_restart":["pools.attention.cells.far.threads"]' "$(cat page)"
wait "$client"
same "L-M03 cells that change all of their options" changed.txt

# What cannot be: nothing changes, or it waits for a restart.
before=$(cells)
write 'main: {members: 2, partition: requests, threads: 3}' 'far: {members: 1, threads: 2, spares: 1}' 'west: {members: 1}' \
  'odd: {members: 2}'
reloaded
contains "a new cell whose members do not divide the heads is refused" "cannot be spread evenly over 2" "$(cat page)"
write 'main: {members: 2, partition: requests, threads: 3}' 'far: {members: 1, threads: 2, spares: 1}' 'west: {members: 1}' \
  'big: {members: 1, kv_bytes: 60TiB}'
reloaded
contains "a new cell that the memory cannot hold is refused" "more than the memory limit" "$(cat page)"
write 'main: {members: 2, partition: requests, threads: 3}' 'far: {members: 1, threads: 2, spares: 1}' 'west: {members: 1}' \
  'safe: {members: 1, parity: true}' 'here: {members: 1, placement: in_process}'
reloaded
expect "they are not there" "$before" "$(cells)"
for key in safe.members safe.parity here.members here.placement; do
  contains "no place for it while the service runs: $key" "pools.attention.cells.$key" \
    "$(python3 -c 'import json; print(*json.load(open("page"))["needs_restart"])')"
done
none_in_use "cells"
expect "L-M03 no worker that leaves cuts a link of others" 0 "$(grep -c 'a link was cut but no worker was lost' log)"
stop "cells that came and went"

# All in one process: a cell of this process can come, one of processes cannot.
printf 'version: 1\npools:\n  attention: {members: 1, kv_bytes: 8MiB}\n' >cells.yaml
serve here.log --config cells.yaml "${tiny[@]}"
decoding here.txt $requests
printf 'version: 1\npools:\n  attention:\n    kv_bytes: 8MiB\n    cells:\n      two: {members: 3}\n' >cells.yaml
reload_until "main=0 two=3"
wait "$client"
same "L-M03 a pool of one process that becomes another cell" here.txt
printf '      out: {members: 1, placement: local}\n' >>cells.yaml
reloaded
contains "a cell of processes waits for a restart" "pools.attention.cells.out.placement" \
  "$(python3 -c 'import json; print(*json.load(open("page"))["needs_restart"])')"
none_in_use "cells of one process"
stop "cells of one process"

finish
