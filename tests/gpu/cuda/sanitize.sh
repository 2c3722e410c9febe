#!/usr/bin/env bash
# sanitize.sh TEST_CUDA: runs the kernel tests under compute-sanitizer's memcheck and racecheck.
# Exit code 77: there is no compute-sanitizer, or no device.
set -uo pipefail
program=$1
# Kernels of these wait for another stream or for the host, and the tool lets one kernel run at a
# time: they would wait for their deadline.
waiting='*channel_test*,*fhbn_test*,*pipeline_test*'
# Of the others, the cases in which two streams wait for each other.
waiting_cases='from the device to itself'
tool=$(command -v compute-sanitizer || ls /usr/local/cuda/bin/compute-sanitizer 2>/dev/null || true)
[ -n "$tool" ] || { echo "not sanitized: no compute-sanitizer"; exit 77; }
nvidia-smi -L >/dev/null 2>&1 || { echo "not sanitized: no CUDA device"; exit 77; }
echo "left out: $waiting and '$waiting_cases' (kernels that wait for others, and the tool runs one at a time)"
failed=0
for check in memcheck racecheck; do
  log=$(mktemp)
  timeout "${SANITIZE_SECONDS:-900}" "$tool" --tool "$check" --error-exitcode 9 --report-api-errors no \
    "$program" -sfe="$waiting" -sce="$waiting_cases" "${@:2}" >"$log" 2>&1
  status=$?
  echo "$check: $(grep -E 'ERROR SUMMARY|RACECHECK SUMMARY' "$log" | tail -1 | sed 's/=*//g'), exit code $status"
  grep -E 'test cases:' "$log" | tail -1
  if [ $status -ne 0 ]; then
    failed=1
    grep -E '^========= (Invalid|Error|Warning|Race|.*hazard|    at )' "$log" | sort | uniq -c | sort -rn | head -20
    [ $status -eq 124 ] && echo "$check: cut off after ${SANITIZE_SECONDS:-900} s"
  fi
  rm -f "$log"
done
exit $failed
