#!/usr/bin/env bash
# Two attention cells beside each other in processes: the tokens of a single process, also where a shard is killed, a cell
# changes its size, loses all members and gets them back, by hand and by a reload.
#
# A cell by heads stands beside one by requests as well, and is cut otherwise by a reload.
#
# usage: tests/process/cells_test.sh LAMELLA WRITE_TINY_MODEL SOURCE
set -uo pipefail
. "$(dirname "$0")/tiny_service.sh"

requests="24 1000"
many="64 1500" # the autoscaler looks at them for longer than it waits before a step

serve single.log "${tiny[@]}"
answers single.txt $requests
answers many.txt $many
stop "a single process"

same() { # same NAME FILE
  cmp -s single.txt "$2"
  expect "$1: the same tokens" 0 $?
}
cells() { status | json '" ".join(c["name"] + "=" + str(c["members"]) for c in x["pools"][0]["cells"])'; }
# used_in CELL
used_in() { status | json "sum(c['used'] for c in x['pools'][0]['cells'] if c['name'] == '$1')"; }
scaled() { "$lamella" scale "$@" --admin "127.0.0.1:$admin" >page 2>&1; }

sed 's/64MiB/8MiB/; s/256MiB/24MiB/' "$source/config/cells.yaml" >cells.yaml
serve log --config cells.yaml "${tiny[@]}"
expect "both cells have their members" "far=1 near=3" "$(cells)"
decoding two.txt $requests
in_both=0
for _ in $(seq 100); do
  [ "$(used_in far)" -gt 0 ] && [ "$(used_in near)" -gt 0 ] && in_both=1 && break
  sleep 0.05
done
wait "$client"
expect "L-M23 both cells have KV of running sequences" 1 "$in_both"
same "L-M23 two cells" two.txt
none_in_use "two cells"

killed "L-M26 a shard of one cell is killed" single.txt "$requests" "$(part 'shard 0')"
expect "L-M26 some sequences are computed again, not all" 1 $((computed > 0 && computed < 24))

decoding smaller.txt $requests
scaled attention/near=1
expect "L-M03 a cell gets fewer members" 0 $?
scaled attention/far=0
expect "L-M03 a cell loses its last member" 0 $?
expect "L-M03 the other one has all" "far=0 near=1" "$(cells)"
wait "$client"
same "L-M03 cells that get smaller" smaller.txt

decoding larger.txt $requests
sed -i 's/far: { members: 1/far: { members: 3/' cells.yaml
kill -HUP "$server"
for _ in $(seq 300); do
  [ "$(cells)" != "far=3 near=1" ] || break
  sleep 0.1
done
expect "L-M03 a reload gives a cell members" "far=3 near=1" "$(cells)"
wait "$client"
same "L-M03 cells that get larger" larger.txt

scaled attention=3
expect "the size of a pool with cells is refused" 1 $?
contains "the size of a pool with cells: the reason" "attention/far, attention/near" "$(cat page)"
scaled attention/near=2
expect "members that do not divide the heads are refused" 1 $?
scaled attention/east=1
expect "a cell that does not exist is refused" 1 $?
scaled attention/near=0
expect "a cell is emptied" 0 $?
scaled attention/far=0
expect "the last cell is not" 1 $?
contains "the last cell: the reason" "at least one member" "$(cat page)"
none_in_use "cells"
stop "cells"

# A cell with parity beside one without: what is lost of the first is reconstructed, of the second computed again.
serve guarded.log --config cells.yaml --set pools.attention.cells.near.parity=true --set pools.attention.cells.far.spares=1 \
  "${tiny[@]}"
with_parity() { status | json 'sum(w["part"] == "parity" for w in x["workers"])'; }
# of_cells: the cells of workers with a part, one word each.
of_cells() { status | json '" ".join(sorted(w["cell"] for w in x["workers"] if w["part"] != "spare" and w["role"] == "attention"))'; }
expect "L-M26 a cell has one more worker, with its parity" 1 "$(with_parity)"
expect "workers say of which cell they are" "far far far near near near near" "$(of_cells)"
killed "L-M26 a shard of a cell with parity is killed" single.txt "$requests" "$(part 'shard 4')"
expect "L-M26 its KV is reconstructed" 0 "$computed"
killed "L-M26 a shard of a cell without parity is killed" single.txt "$requests" "$(part 'shard 1')"
expect "L-M26 its KV is computed again" 1 $((computed > 0 && computed < 24))
killed "L-M26 the parity of a cell is killed" single.txt "$requests" "$(part parity)"
expect "L-M26 nothing is computed again for it" 0 "$computed"
decoding guarded.txt $requests
for change in near=1 far=0 far=1 near=0 near=3; do
  scaled "attention/$change"
  expect "L-M03 a cell with parity changes: $change" 0 $?
done
wait "$client"
same "L-M03 a cell with parity that changes" guarded.txt
for _ in $(seq 300); do
  [ "$(with_parity)" = 0 ] || break
  sleep 0.1
done
killed "L-M26 a shard of the changed cell is killed" single.txt "$requests" "$(part 'shard 2')"
expect "L-M26 its KV is reconstructed" 0 "$computed"
none_in_use "cells with parity"
stop "cells with parity"

# A cell of this process beside one of processes with a spare of its own.
apart=(--set pools.attention.cells.near.members=1 --set pools.attention.cells.near.kv_bytes=8MiB
  --set pools.attention.cells.far.members=1 --set pools.attention.cells.far.kv_bytes=8MiB
  --set pools.attention.cells.far.placement=local --set pools.attention.cells.far.spares=1)
serve apart.log "${tiny[@]}" "${apart[@]}"
expect "L-M03 the workers of a cell are processes of its own" "1 2" \
  "$(status | json '" ".join(str(sum((w["pid"] == '"$server"') == here for w in x["workers"] if w["role"] == "attention")) for here in (True, False))')"
killed "L-M03 a spare of the cell takes the part of a killed shard" single.txt "$requests" "$(part 'shard 0')"
decoding apart.txt $requests
for change in near=3 far=3 near=0 near=1 far=0 far=1; do
  scaled "attention/$change"
  expect "L-M03 cells of two placements: $change" 0 $?
done
wait "$client"
same "L-M03 cells of two placements that change" apart.txt
answers after.txt $requests
same "L-M03 cells of two placements after the changes" after.txt
expect "L-M03 no worker that leaves cuts a link of others" 0 "$(grep -c 'a link was cut but no worker was lost' apart.log)"
stop "cells of two placements"

# A cell by heads with parity beside one by requests, which has a table for each of its members.
cat >cuts.yaml <<'YAML'
version: 1
pools:
  model: {placement: local}
  attention:
    placement: local
    cells:
      near: {members: 3, kv_bytes: 8MiB, parity: true}
      far: {members: 2, kv_bytes: 8MiB, partition: requests}
YAML
cuts() { status | json '" ".join(c["name"] + "=" + str(c["members"]) + " by " + c["partition"] for c in x["pools"][0]["cells"])'; }
# recut SED TEXT: a reload with another file, until the cells are as TEXT says.
recut() {
  sed -i "$1" cuts.yaml
  kill -HUP "$server"
  for _ in $(seq 300); do
    [ "$(cuts)" != "$2" ] || break
    sleep 0.1
  done
  expect "L-M24 a reload cuts a cell otherwise: $2" "$2" "$(cuts)"
}
serve cuts.log --config cuts.yaml "${tiny[@]}"
expect "L-M24 cells by heads and by requests" "far=2 by requests near=3 by heads" "$(cuts)"
contains "status tells the partition of each cell" "requests" "$("$lamella" status --admin "127.0.0.1:$admin" | grep main/far)"
decoding cuts.txt $requests
expect "L-M23 L-M24 both cells have KV of running sequences" 1 $(($(used_in far) > 0 && $(used_in near) > 0))
wait "$client"
same "L-M23 L-M24 a cell by heads beside one by requests" cuts.txt
killed "L-M26 a shard of the cell by heads is killed" single.txt "$requests" "$(part 'shard 0')"
expect "L-M26 its KV is reconstructed" 0 "$computed"
killed "L-M26 a shard of the cell by requests is killed" single.txt "$requests" "$(part 'shard 4')"
expect "L-M26 its KV is computed again, that of the others is not" 1 $((computed > 0 && computed < 24))
decoding cuts.txt $requests
for change in far=4 near=1 far=1 near=3 far=0 far=2; do
  scaled "attention/$change"
  expect "L-M03 cells of two partitions: $change" 0 $?
done
drained=$(part 'shard 3')
"$lamella" drain "$drained" --admin "127.0.0.1:$admin" >page 2>&1
expect "L-M03 a member of the cell by requests is drained" 0 $?
expect "L-M03 the others serve on" "far=1 by requests near=3 by heads" "$(cuts)"
scaled attention/far=2
expect "L-M03 it gets another one" 0 $?
wait "$client"
same "L-M03 cells of two partitions that change" cuts.txt
decoding recut.txt $requests
recut 's/far: {members: 2, kv_bytes: 8MiB, partition: requests}/far: {members: 3, kv_bytes: 8MiB}/' "far=3 by heads near=3 by heads"
recut 's/far: {members: 3, kv_bytes: 8MiB}/far: {members: 2, kv_bytes: 8MiB, partition: requests}/' \
  "far=2 by requests near=3 by heads"
scaled attention/far=3 --partition heads
expect "L-M24 a cell is cut otherwise by hand" 0 $?
expect "L-M24 it is" "far=3 by heads near=3 by heads" "$(cuts)"
scaled attention/far=2 --partition requests
expect "L-M24 a cell is cut back by hand" 0 $?
expect "L-M24 it is, too" "far=2 by requests near=3 by heads" "$(cuts)"
scaled attention/near=3 --partition requests
expect "a partition by hand that the parity does not go with is refused" 1 $?
contains "a partition by hand with parity: the reason" "has parity, which needs heads" "$(cat page)"
scaled model=1 --partition heads
expect "a partition of a pool that has none is refused" 1 $?
contains "a partition of a pool that has none: the reason" "is no cell" "$(cat page)"
wait "$client"
same "L-M24 a cell that is cut otherwise" recut.txt
reloaded() { curl -s -X POST "http://127.0.0.1:$admin/admin/reload" >page; }
before=$(cuts)
sed -i 's/parity: true/parity: true, partition: requests/' cuts.yaml
reloaded
expect "a partition that the parity does not go with is refused" "$before" "$(cuts)"
contains "a partition with parity: the reason" "parity needs partition: heads" "$(cat page)"
sed -i 's/parity: true, partition: requests/parity: true/; s/, partition: requests//' cuts.yaml
reloaded
expect "a partition that the members do not go with is refused" "$before" "$(cuts)"
contains "a partition with these members: the reason" "cannot be spread evenly over 2" "$(cat page)"
none_in_use "cells of two partitions"
stop "cells of two partitions"

# A most of all cells together, which need not divide the KV heads.
follows=(--set pools.attention.placement=local --set pools.attention.cells.near.members=1 --set pools.attention.max=4
  --set pools.attention.cells.far.members=1 --set pools.attention.kv_bytes=1MiB --set autoscale.cool_down_up_seconds=1)
"$lamella" config check --set http.listen=127.0.0.1:0 --set admin.listen=127.0.0.1:0 "${tiny[@]}" "${follows[@]}" >page 2>&1
expect "cells with a most of all: config check takes them" 0 $?
serve follows.log "${tiny[@]}" "${follows[@]}"
decoding follows.txt $many
for _ in $(seq 600); do
  ! grep -q 'autoscaling pool=attention/.* from=1 to=3' follows.log || break
  sleep 0.1
done
expect "L-M19 the autoscaler gives a cell more members" 1 $(($(grep -c 'autoscaling pool=attention/.* from=1 to=3' follows.log) > 0))
wait "$client"
cmp -s many.txt follows.txt
expect "L-M19 cells that follow the load: the same tokens" 0 $?
stop "cells that follow the load"

finish
