#!/usr/bin/env bash
# The failure harness itself: its checker calls each kind of broken run broken, its proxy injures as it says, its
# schedules are the same for the same seed.
#
# usage: tests/process/harness_self_test.sh
PYTHONDONTWRITEBYTECODE=1 exec python3 -m unittest discover -s "$(dirname "$0")/harness" -p '*_test.py'
