# Sets PYTHON to one that reads YAML, for the tests of deploy/. Sourced; `skip` is the caller's.
for PYTHON in python3 /usr/bin/python3 ''; do
  [ -n "$PYTHON" ] || skip "no Python here reads YAML (package: python3-yaml)"
  "$PYTHON" -c 'import yaml' 2>/dev/null && break
done
