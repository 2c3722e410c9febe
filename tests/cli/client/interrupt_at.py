"""interrupt_at.py TEXT COMMAND...: runs a command, passes on what it prints, and sends it SIGINT once
when it has printed TEXT. Exits with its code; a command that a signal ended exits with 128 and more."""
import signal
import subprocess
import sys

text = sys.argv[1].encode()
process = subprocess.Popen(sys.argv[2:], stdout=subprocess.PIPE)
printed = b""
interrupted = False
while piece := process.stdout.read1():
    printed += piece
    sys.stdout.buffer.write(piece)
    if not interrupted and text in printed:
        process.send_signal(signal.SIGINT)
        interrupted = True
code = process.wait()
sys.exit(code if code >= 0 else 128 - code)
