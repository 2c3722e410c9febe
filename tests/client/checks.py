"""Runs the checks of a client script: its functions, but those whose names begin with an underscore."""

import sys
import time
import traceback


def run(scope, module):
    """Calls the functions that `module` defines, in their order; exits with 1 if one fails."""
    run_all(of(scope, module))


def of(scope, module):
    return [check for name, check in scope.items()
            if not name.startswith("_") and callable(check) and getattr(check, "__module__", "") == module]


def run_all(checks):
    """Calls these functions; exits with 1 if one fails."""
    sys.exit(1 if failures(checks) else 0)


def failures(checks):
    """Calls these functions; answers how many failed."""
    failed = 0
    for check in checks:
        began = time.monotonic()
        title = check.__name__.replace("_", " ")
        try:
            check()
        except Exception:  # the others are still worth a run
            traceback.print_exc(file=sys.stdout)
            print(f"FAIL {title}", flush=True)
            failed += 1
        else:
            print(f"ok   {title} ({time.monotonic() - began:.1f} s)", flush=True)
    return failed
