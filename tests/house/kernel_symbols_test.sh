#!/usr/bin/env bash
# kernel_symbols_test.sh ARCHIVE: no function that is compiled for AVX2, AVX-VNNI, AVX-512 or AMX has linkage that lets
# the linker keep it for the whole program, which then would need that CPU. ARCHIVE: the optimised library.
set -euo pipefail
found=$(nm -C "$1" 2>/dev/null | awk '/\.o:$/ { file = $0 } / [WV] / && !/ DW\.ref/ { print file, $0 }' |
  grep -E '^(avx2|avxvnni|avx512|amx)\.cpp\.o:' || true)
sets=$(nm -C "$1" 2>/dev/null | grep -cE '^(avx2|avxvnni|avx512|amx)\.cpp\.o:$' || true)
[ -z "$found" ] || { echo "the linker may keep these for the whole program:"; echo "$found"; exit 1; }
[ "$sets" -ge 4 ] || { echo "$1 has $sets of the four sets"; exit 1; }
echo "ok: $sets kernel sets"
