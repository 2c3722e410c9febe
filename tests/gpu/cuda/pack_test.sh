#!/usr/bin/env bash
# pack_test.sh GPU_CHECK: unpacks what `gpu-check --pack` makes into an empty folder, configures it there, and compiles
# what needs Boost and doctest: no header of theirs may come from anywhere else. The rest needs no more than the
# toolkit, or is the same as in the whole build.
set -euo pipefail
check=$1
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
"$check" --pack "$folder/pack.tar.gz"
tar -xzf "$folder/pack.tar.gz" -C "$folder"
cd "$folder/lamella"
"$folder/lamella/deploy/gpu-check" --help >/dev/null
[ -s source ] || { echo "the pack does not say of which sources it is"; exit 1; }
cmake -G Ninja -S . -B build -DCMAKE_BUILD_TYPE=Release -DLAMELLA_GPU_ONLY=ON --log-level=WARNING
grep -q 'LAMELLA_BOOST:PATH=.*/lamella/carried$' build/CMakeCache.txt
grep -q 'LAMELLA_DOCTEST:PATH=.*/lamella/carried$' build/CMakeCache.txt
for program in test_cuda test_cuda_host step_bench attention_bench gemm_bench fhbn_bench; do
  ninja -C build -t query "$program" >/dev/null || { echo "$program would not be built"; exit 1; }
done
objects=()
for source in $(grep -lE '<(boost|doctest)/' base/*.cpp model/program/*.cpp); do
  objects+=("CMakeFiles/lamella_${source%%/*}.dir/$source.o")
done
objects+=(CMakeFiles/test_cuda_host.dir/tests/main.cpp.o
  CMakeFiles/test_cuda.dir/tests/gpu/cuda/pipeline_test.cpp.o
  CMakeFiles/test_cuda_host.dir/tests/gpu/fake_cuda/driver_test.cpp.o)
ninja -C build "${objects[@]}" >build/log 2>&1 || { tail -30 build/log; exit 1; }
if ninja -C build -t deps "${objects[@]}" | grep -E '^ +/.*/(boost|doctest)/' | grep -v "$folder"; then
  echo "these headers are not in the pack"
  exit 1
fi
