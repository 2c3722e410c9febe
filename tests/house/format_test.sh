#!/usr/bin/env bash
# format_test.sh SOURCE: all C++ and CUDA sources are as clang-format 14 writes them; skipped where it is not installed,
# since other versions write some things differently.
set -euo pipefail
cd "$1"
format=$(command -v clang-format-14 || command -v clang-format || true)
if [ -z "$format" ] || ! "$format" --version | grep -q 'version 14\.'; then
  echo "skipped: clang-format 14 is not installed (package clang-format-14)"
  exit 77
fi
find base model scheduler config gpu net actors cli tests \
  \( -name '*.cpp' -o -name '*.hpp' -o -name '*.cu' -o -name '*.cuh' \) -print0 \
  | xargs -0 "$format" --dry-run -Werror
