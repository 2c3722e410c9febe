"""What the tests of grammars share: the program that tells which texts a grammar takes, and failures."""

import json
import subprocess
import sys


def texts_of(value):
    """The layouts of models: with blanks and without, escaped and not."""
    yield json.dumps(value)
    yield json.dumps(value, separators=(",", ":"))
    plain = json.dumps(value, ensure_ascii=False, indent=2)
    if not any(0xD800 <= ord(c) <= 0xDFFF for c in plain):
        yield plain


class Talk:
    """grammar_talk, a line for each question."""

    def __init__(self, program):
        self.process = subprocess.Popen([program], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def ask(self, **question):
        self.process.stdin.write(json.dumps(question) + "\n")
        self.process.stdin.flush()
        answer = self.process.stdout.readline()
        if not answer:
            sys.exit(f"FAILED: the program ended at {json.dumps(question)[:2000]}")
        return json.loads(answer)

    def end(self):
        self.process.stdin.close()
        self.process.wait(timeout=60)


class Failures:
    def __init__(self):
        self.count = 0

    def __call__(self, what):
        self.count += 1
        if self.count <= 50:
            print("FAILED:", what)
