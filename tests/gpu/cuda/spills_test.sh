#!/usr/bin/env bash
# spills_test.sh FOLDER: what the assembler said of the attention and product kernels when they were
# compiled (FOLDER/**/*.cu.o.ptxas). Fails when one keeps registers in memory, when products that
# should overlap were put one after the other (C75xx, "wgmma ... serialized"), or when a report is
# missing or holds no kernels: then nothing was checked.
set -euo pipefail
failed=0
for source in attention_previous attention_rows attention_finish mma_gemm wgmma_gemm; do
  report=$(find "$1" -name "$source.cu.o.ptxas" -print -quit)
  if [ -z "$report" ]; then
    echo "$source: no report below $1"
    failed=1
    continue
  fi
  awk -v source="$source" '
    /Compiling entry function/ { kernels++; name = $0; sub(/^[^\047]*\047/, "", name) }
    /\(C75[0-9][0-9]\)/ { print source ": " $0; serial++ }
    /bytes stack frame/ {
      lines++
      if ($0 !~ /(^| )0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads/) {
        print source ": " name; print $0; bad++
      }
    }
    END {
      if (kernels == 0 || lines < kernels) { print source ": no kernels in the report"; exit 1 }
      printf "%s: %d kernels, %d with spills or a stack, %d remarks on serial products\n", source, kernels, bad, serial
      exit bad + serial > 0
    }' "$report" || failed=1
done
exit $failed
