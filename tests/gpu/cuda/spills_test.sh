#!/usr/bin/env bash
# spills_test.sh FOLDER: what the assembler said of the attention and product kernels when they were
# compiled (FOLDER/**/*.cu.o.ptxas). Fails when one keeps registers in memory, or when a report is
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
    /bytes stack frame/ {
      lines++
      if ($0 !~ /(^| )0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads/) {
        print source ": " name; print $0; bad++
      }
    }
    END {
      if (kernels == 0 || lines < kernels) { print source ": no kernels in the report"; exit 1 }
      printf "%s: %d kernels, %d with spills or a stack\n", source, kernels, bad
      exit bad > 0
    }' "$report" || failed=1
done
exit $failed
