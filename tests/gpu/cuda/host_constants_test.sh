#!/usr/bin/env bash
# Kernels that share formulas with the host read no constant of the host: nvcc makes a trap, or a load from a small address,
# of an element of a constant array that is chosen at run time, and says nothing.
#
# usage: tests/gpu/cuda/host_constants_test.sh NVCC SOURCE_FOLDER
set -euo pipefail
cd "$2"
failed=0
for kernels in $(grep -l 'quantised_block.hpp' -r gpu/cuda --include='*.cu'); do
  found=$("$1" -I. -std=c++20 -O3 --expt-relaxed-constexpr -arch=sm_90 -ptx "$kernels" -o - | grep -nE '^\s*trap;|mov\.u64\s+%rd[0-9]+, [0-9]+;' || true)
  [ -z "$found" ] && continue
  printf '%s: reads what the device does not have, in PTX:\n%s\n' "$kernels" "$found"
  failed=1
done
exit $failed
