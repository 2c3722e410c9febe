"""Serves the tiny models of speaking_model.py one after the other, and runs checks against each.

In the environment, LAMELLA is the program.
"""

import os
import pathlib
import re
import signal
import subprocess
import sys
import tempfile
import time

import checks
import speaking_model


def _address(log, server):
    """Waits for the address of the API in the log of a server."""
    end = time.monotonic() + 300
    while time.monotonic() < end and server.poll() is None:
        found = re.search(r"^ *API *(http://\S*/v1)$", log.read_text(), re.MULTILINE)
        if found:
            return found[1]
        time.sleep(0.05)
    raise SystemExit("the server did not start:\n" + log.read_text())


def _failures(family, folder, begin, all_checks):
    model, log = pathlib.Path(folder, family + ".gguf"), pathlib.Path(folder, "log")
    speaking_model.write(family, model)
    with open(log, "w") as to:
        server = subprocess.Popen(
            [os.environ["LAMELLA"], "serve", "--model", model, "--set", "http.listen=127.0.0.1:0",
             "--set", "admin.listen=127.0.0.1:0"], stderr=to)
    try:
        begin(family, _address(log, server))
        print(f"tools of {family}", flush=True)
        failed = checks.failures(all_checks)
        server.send_signal(signal.SIGTERM)
        if server.wait(120) != 0:
            print(f"FAIL SIGTERM ends the server with {server.returncode}")
            failed += 1
    finally:
        if server.poll() is None:
            server.kill()
            server.wait()
    if failed:
        print("the end of the server's log:\n" + log.read_text()[-4000:], flush=True)
    return failed


def run(scope, module, begin):
    """Runs the checks of a script for the families of its command line, or all; exits with 1 if one fails.

    `begin` is called with a family and the address of its server before each round."""
    families = sys.argv[1:] or speaking_model.names
    with tempfile.TemporaryDirectory() as folder:
        failed = sum(_failures(x, folder, begin, checks.of(scope, module)) for x in families)
    print(f"{len(families)} families, {failed} checks failed", flush=True)
    sys.exit(1 if failed else 0)
