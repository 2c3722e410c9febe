# For the shell tests: sourced. A failed check is printed and makes the script end with 1.

failures=0
pass() { printf 'ok   %s\n' "$1"; }
fail() { printf 'FAIL %s\n%s\n' "$1" "${2:-}" | head -c 2000; echo; failures=$((failures + 1)); }

# expect NAME WANTED GOT: equal texts.
expect() { if [ "$2" = "$3" ]; then pass "$1"; else fail "$1" "wanted: $2
got:    $3"; fi; }

# contains NAME PART TEXT
contains() { case $3 in *"$2"*) pass "$1" ;; *) fail "$1" "wanted a part: $2
got: $3" ;; esac; }

# lacks NAME PART TEXT
lacks() { case $3 in *"$2"*) fail "$1" "did not want: $2
got: $3" ;; *) pass "$1" ;; esac; }

# json FILTER: reads one JSON text from standard input, prints a Python expression of it (as x).
json() { python3 -c 'import json, sys; x = json.load(sys.stdin); print(eval(sys.argv[1]))' "$1"; }

finish() { if [ "$failures" != 0 ]; then echo "$failures failed"; exit 1; fi; }
