# A service whose devices are emulated CUDA ones. The GPU part it loads is the real one over kernels that run lane by lane
# on the CPU (tests/emulated): no GPU is needed, and nothing is said of one. Sourced instead of service.sh by tests that are
# called with LAMELLA WRITE_TINY_MODEL GPU_PART; `write` makes the tiny model at $work/$model.
own_model=tiny.gguf
[ $# = 3 ] || { sed -n '2,/^set/p' "$0" | grep '^#' >&2; exit 2; }
write=$2 gpu_part=$3
. "$(dirname "$0")/service.sh" 1 "$1"

mkdir bin
cp "$lamella" bin/lamella
ln -s "$gpu_part" bin/liblamella_cuda.so # the program looks for it beside itself
lamella=$work/bin/lamella
