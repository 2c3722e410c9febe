"""For the tests of deploy/ in Python: named checks, and what the program says of itself."""
import json
import os
import re
import subprocess
import sys
import traceback


class Checks:
    """Each check is a function; what it asserts in vain is printed, and the script ends with 1."""

    def __init__(self):
        self.failed = 0

    def __call__(self, name, check, *words):
        try:
            check(*words)
        except Exception as trouble:  # a check that breaks is one that failed
            self.failed += 1
            at = traceback.extract_tb(trouble.__traceback__)[-1]
            where = f"{os.path.basename(at.filename)}:{at.lineno}"
            print(f"FAIL {name}\n{type(trouble).__name__}: {str(trouble) or at.line} ({where})")
        else:
            print(f"ok   {name}")
        sys.stdout.flush()

    def finish(self):
        if self.failed:
            print(f"{self.failed} failed")
        sys.exit(1 if self.failed else 0)


class Program:
    """The real program, asked about its options."""

    def __init__(self, path):
        self.path = os.path.abspath(path)
        # Options come from the files of a test, not from whoever runs it.
        self.environment = {k: v for k, v in os.environ.items() if not k.startswith("LAMELLA_")}

    def run(self, *words, environment=None):
        return subprocess.run([self.path, *words], capture_output=True, text=True, timeout=60,
                              env={**self.environment, **(environment or {})})

    def out(self, *words, **more):
        got = self.run(*words, **more)
        assert got.returncode == 0, f"lamella {' '.join(words)} ends with {got.returncode}: {got.stderr}"
        return got.stdout

    def flags(self, *command):
        """The names of a command's options."""
        return set(re.findall(r"^ +(?:-\w,)?(--[a-z-]+)", self.out(*command, "--help"), re.M))

    def options(self, *words, environment=None):
        """Every key of a configuration with its value, and when a change is taken."""
        shown = json.loads(self.out("config", "show", "--effective", "--json", *words, environment=environment))
        return {x["key"]: x for x in shown["options"]}


def bytes_of(text):
    """A number of bytes, as Kubernetes or Lamella write it."""
    number, unit = re.fullmatch(r"([0-9.]+)([A-Za-z]*)", str(text)).groups()
    scale = {"": 1, "Ki": 2**10, "KiB": 2**10, "Mi": 2**20, "MiB": 2**20, "Gi": 2**30, "GiB": 2**30, "k": 10**3,
             "M": 10**6, "G": 10**9}
    return float(number) * scale[unit]
