# Sets PYTHON to one that reads YAML, for the tests of deploy/. Sourced.
. "$(dirname "${BASH_SOURCE[0]}")/../lacks.sh"
for PYTHON in python3 /usr/bin/python3 ''; do
  [ -n "$PYTHON" ] || lacks python3-yaml "Python that reads YAML"
  "$PYTHON" -c 'import yaml' 2>/dev/null && break
done
