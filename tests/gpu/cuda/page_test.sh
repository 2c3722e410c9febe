#!/usr/bin/env bash
# page_test.sh GPU_PAGE: the page of deploy/gpu-check, made of canned logs: what they say is on it, and what they do not
# say is told.
set -euo pipefail
page=$1
logs=$(mktemp -d)
trap 'rm -rf "$logs"' EXIT
failed=0
# has TEXT: a line of the page, blanks counted once.
has() {
  "$page" "$logs" | tr -s ' ' | grep -qxF -- "$1" || { echo "missing: $1"; failed=1; }
}

# Nothing has run.
has 'tests not run'
has 'of-pytorch-8b-64x4096 - - - not-measured'
has '0 at the aim, 0 at what they must be, 0 missed, 8 not measured'

echo 'NVIDIA H200, 580.159, 143771 MiB' >"$logs/device.log"
cat >"$logs/tests.log" <<'LOG'
cuda: seed 3 target practice must aim high
[doctest] test cases:   41 |   40 passed | 1 failed | 0 skipped
[doctest] assertions: 9000 | 8999 passed | 1 failed |
LOG
for kernels in attention_previous attention_rows attention_finish mma_gemm wgmma_gemm; do
  echo "$kernels: 12 kernels, 0 with spills or a stack, 0 remarks on serial products"
done >"$logs/spills.log"
printf 'memcheck: ERROR SUMMARY: 0 errors, exit code 0\nracecheck: RACECHECK SUMMARY: 0 hazards, exit code 0\n' \
  >"$logs/sanitizer.log"
cat >"$logs/attention_bench.log" <<'LOG'
copy 4210 GB/s (both ways), read 4640 GB/s
8 x 4k                     consecutive 8 x 128   8 |     37.5     37.6 us  3565 GB/s  0.84 of copy
target decode-attention-of-copy 0.84 must >=0.85 aim >=0.93 missed
LOG
cat >"$logs/gemm_bench.log" <<'LOG'
NVIDIA H200: read 4.62 TB/s, copy 4.20 TB/s (both ways), bf16 8192^3 683 TFLOP/s
target products-of-best 1 must >=0.97 aim >=1 aim
target products-row-invariant-of-best 0.87 must >=0.85 aim >=0.95 must
LOG
cat >"$logs/step_bench.log" <<'LOG'
target launch-gap-us-8b-64x4096 8.75 must <=30 aim <=10 aim
target of-pytorch-8b-64x4096 0 must >=2 aim >=3 not-measured
LOG
has 'device NVIDIA H200, 580.159, 143771 MiB'
has 'tests 41 | 40 passed | 1 failed | 0 skipped'
has 'spills 5 of 5 kernel files without'
has 'sanitizer memcheck: ERROR SUMMARY: 0 errors, exit code 0; racecheck: RACECHECK SUMMARY: 0 hazards, exit code 0'
has 'limits copy 4210 GB/s (both ways), read 4640 GB/s'
has 'decode-attention-of-copy 0.84 >=0.85 >=0.93 missed'
has 'launch-gap-us-8b-64x4096 8.75 <=30 <=10 aim'
has 'of-pytorch-8b-64x4096 0 >=2 >=3 not-measured'
has 'round-trip-host-saves - - - not-measured'
has '2 at the aim, 1 at what they must be, 1 missed, 4 not measured'
exit $failed
