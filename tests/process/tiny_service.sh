# A service of a tiny model (3 layers, 3 KV heads, a context of 4096), for tests of what processes do to each other: it
# starts, answers and is computed again in a moment. Sourced instead of service.sh by tests that are called with
# LAMELLA WRITE_TINY_MODEL SOURCE; `tiny` has the words that serve it.
own_model=tiny.gguf
[ $# = 3 ] || { sed -n '2,/^set/p' "$0" | grep '^#' >&2; exit 2; }
write=$2
. "$(dirname "${BASH_SOURCE[0]}")/service.sh" 2 "$1" "$3"

"$write" "$work/$model" 4096
tiny=(--set "model.path=$work/$model" --set kv.bytes=32MiB --set pools.model.threads=1 --set pools.attention.threads=1)
