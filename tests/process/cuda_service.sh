# A service whose devices are emulated CUDA ones. The GPU part it loads is the real one over kernels that run lane by lane
# on the CPU (tests/emulated): no GPU is needed, and nothing is said of one. Sourced instead of service.sh by tests that are
# called with LAMELLA WRITE_TINY_MODEL GPU_PART; `write` makes the tiny model at $work/$model.
#
# With liblamella_cuda.so as GPU_PART the devices are this machine's own (tests/run --gpu); without any it is skipped.
own_model=tiny.gguf
[ $# = 3 ] || { sed -n '2,/^set/p' "$0" | grep '^#' >&2; exit 2; }
write=$2 gpu_part=$3
. "$(dirname "$0")/service.sh" 1 "$1"

mkdir bin
cp "$lamella" bin/lamella
ln -s "$gpu_part" bin/liblamella_cuda.so # the program looks for it beside itself
lamella=$work/bin/lamella

real=0 # devices, where they are real
if [ "$(basename "$gpu_part")" = liblamella_cuda.so ]; then
  real=$(nvidia-smi -L 2>/dev/null | grep -c GPU)
  [ "$real" != 0 ] || { echo "SKIPPED: no CUDA device"; exit 77; }
fi
# device N: the Nth device, of as many as there are.
device() { echo "cuda:$((real > 0 ? $1 % real : $1))"; }
# named N...: what status calls these devices, each once.
named() {
  local what=emulated
  [ "$real" = 0 ] || what=$(nvidia-smi --query-gpu=name --format=csv,noheader | head -n 1)
  for i in "$@"; do echo "$(device "$i") $what"; done | sort -u | paste -sd ' '
}
# Real devices decode the tiny model ten to a hundred times as fast (processes that share one wait for their turns): who
# is to be killed while it decodes has more to do there.
context=512 kv=2MiB
[ "$real" = 0 ] || context=4096 kv=32MiB
