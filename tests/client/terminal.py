"""lamella chat as a person meets it, in a pseudo-terminal; run by tests/client/run."""

import json
import os
import pty
import select
import sys
import time
import urllib.request

deadline_s = 300


class Terminal:
    """A program in a terminal of its own."""

    def __init__(self, *command):
        self.pid, self.fd = pty.fork()
        if self.pid == 0:
            os.execvp(command[0], command)
        self.text = ""

    def read(self):
        """What came within a tenth of a second; None at the end."""
        if not select.select([self.fd], [], [], 0.1)[0]:
            return ""
        try:
            return os.read(self.fd, 65536).decode(errors="replace") or None
        except OSError:  # how Linux tells that the program has ended
            return None

    def expect(self, what, part):
        """Reads until `part` came after everything that was expected before."""
        end = time.monotonic() + deadline_s
        while part not in self.text:
            piece = self.read()
            if piece is None or time.monotonic() > end:
                print(f"FAIL {what}: {part!r} did not come; the terminal has {self.text!r}")
                os.kill(self.pid, 9)
                sys.exit(1)
            self.text += piece
        before, _, self.text = self.text.partition(part)
        print(f"ok   {what}")
        return before

    def send(self, text):
        os.write(self.fd, text.encode())

    def exit_code(self):
        while self.read() is not None:
            pass
        return os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])


def check(what, good):
    print(f"{'ok  ' if good else 'FAIL'} {what}")
    if not good:
        sys.exit(1)


def slots_used():
    with urllib.request.urlopen(os.environ["ADMIN_URL"] + "/admin/status", timeout=60) as answer:
        return sum(pool["slots"]["used"] for pool in json.load(answer)["pools"])


os.environ["TERM"] = "xterm"
os.environ.pop("NO_COLOR", None)
chat = Terminal(os.environ["LAMELLA"], "chat", "--url", os.environ["API_URL"], "--temperature", "0")
chat.expect("a prompt is shown", "> ")
chat.send("What is the capital of France? Answer in one sentence.\n")
chat.expect("the answer is streamed", "Paris")
speed = chat.expect("and how fast it was, dimly", "\x1b[0m")
check("with tokens, the first one's time and the rate",
      "tokens, first after" in speed and "/s" in speed and "\x1b[2m" in speed)
chat.expect("the prompt is shown again", "> ")

chat.send("Write a story of a thousand words about a river.\n")
chat.expect("the question is echoed", "river.\r\n")
while len(chat.text) < 80:
    chat.text += chat.read() or ""
chat.send("\x03")
chat.expect("Ctrl-C stops the answer", "(stopped)")
chat.expect("and comes back to the prompt", "> ")
end = time.monotonic() + 120
while slots_used() > 0 and time.monotonic() < end:
    time.sleep(0.1)
check("the server has let go of it", slots_used() == 0)

chat.send("\x03")
chat.expect("Ctrl-C at the prompt does not end it", "/quit ends")
chat.expect("but shows it again", "> ")
chat.send("/help\n")
chat.expect("/help lists the commands", "/reset")
chat.send("/nothing\n")
chat.expect("an unknown command is told", "there is no command /nothing")
chat.send("/reset\n")
chat.expect("/reset forgets", "forgotten")
chat.expect("and asks again", "> ")
chat.send("\x04")
check("Ctrl-D ends with 0", chat.exit_code() == 0)

quits = Terminal(os.environ["LAMELLA"], "chat", "--url", os.environ["API_URL"])
quits.expect("a second one starts", "> ")
quits.send("/quit\n")
check("/quit ends with 0", quits.exit_code() == 0)
