"""Runs the checks of a client script: its functions, but those whose names begin with an underscore."""

import sys
import time
import traceback


def run(scope, module):
    """Calls the functions that `module` defines, in their order; exits with 1 if one fails."""
    failed = 0
    for name, check in list(scope.items()):
        if name.startswith("_") or not callable(check) or getattr(check, "__module__", "") != module:
            continue
        began = time.monotonic()
        title = name.replace("_", " ")
        try:
            check()
        except Exception:  # the others are still worth a run
            traceback.print_exc(file=sys.stdout)
            print(f"FAIL {title}", flush=True)
            failed += 1
        else:
            print(f"ok   {title} ({time.monotonic() - began:.1f} s)", flush=True)
    sys.exit(1 if failed else 0)
