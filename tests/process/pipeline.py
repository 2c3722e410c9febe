"""Tokens per second of a server whose sequences all decode at once.

usage: pipeline.py PORT ADMIN SEQUENCES CONTEXT SECONDS
  Starts so many streams with prompts of CONTEXT tokens, waits until each has given some tokens, and counts the tokens
  of the next SECONDS seconds. Prints one number.
"""
import json
import sys
import threading
import time
import urllib.request

port, admin, sequences, context, seconds = map(int, sys.argv[1:6])
started = threading.Semaphore(0)


def model():
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/v1/models", timeout=60) as answer:
        return json.load(answer)["data"][0]["id"]


def stream(name, number):
    # Tokens of their own, so that no two sequences share slots.
    prompt = [1000 + (number * 7919 + i * 104729) % 40000 for i in range(context)]
    body = {"model": name, "prompt": prompt, "max_tokens": 8000 - context, "ignore_eos": True, "stream": True,
            "temperature": 0}
    request = urllib.request.Request(f"http://127.0.0.1:{port}/v1/completions", json.dumps(body).encode(),
                                     {"content-type": "application/json"})
    events = 0
    try:
        with urllib.request.urlopen(request, timeout=600) as answer:
            for line in answer:
                events += line.startswith(b"data:")
                if events == 3:
                    started.release()
                    events += 1
    except OSError:
        pass


def generated():
    with urllib.request.urlopen(f"http://127.0.0.1:{admin}/metrics", timeout=60) as answer:
        return sum(float(line.split()[-1]) for line in answer.read().decode().splitlines()
                   if line.startswith("vllm:generation_tokens_total"))


name = model()
for i in range(sequences):
    threading.Thread(target=stream, args=(name, i), daemon=True).start()
for _ in range(sequences):
    started.acquire(timeout=600)
time.sleep(1)
before, began = generated(), time.monotonic()
time.sleep(seconds)
print(round((generated() - before) / (time.monotonic() - began), 1))
