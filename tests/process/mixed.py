"""What streams feel of prompts that are computed beside them, and how fast both get on: prints a line of JSON.

usage: mixed.py PORT [--streams N] [--tokens N] [--prompt TOKENS] [--clients N]

`--clients` clients send one prompt of `--prompt` tokens after the other while `--streams` streams decode. Prompts are
different in each request, so that no KV is found.
"""
import argparse
import json
import threading
import time
import urllib.request

options = argparse.ArgumentParser()
options.add_argument("port", type=int)
options.add_argument("--streams", type=int, default=8)
options.add_argument("--tokens", type=int, default=300)
options.add_argument("--prompt", type=int, default=1000)
options.add_argument("--clients", type=int, default=2)
o = options.parse_args()
url = f"http://127.0.0.1:{o.port}/v1"
model = json.load(urllib.request.urlopen(f"{url}/models", timeout=60))["data"][0]["id"]
salts = iter(range(1 << 30))
lock = threading.Lock()


def stream(words, tokens):
    """The times of its tokens, by the clock of all."""
    with lock:
        salt = str(next(salts))
    body = {"model": model, "prompt": "the " * words, "max_tokens": tokens, "stream": True, "ignore_eos": True, "temperature": 0,
            "cache_salt": salt}
    request = urllib.request.Request(f"{url}/completions", json.dumps(body).encode(),
                                     {"content-type": "application/json"})
    times = []
    with urllib.request.urlopen(request, timeout=600) as reply:
        for line in reply:
            if line.startswith(b"data: {") and json.loads(line[6:])["choices"]:
                times.append(time.monotonic())
    return times


def at(values, share):
    values = sorted(values)
    return round(values[min(len(values) - 1, int(share * len(values)))], 1)


stream(o.prompt, 4)
decoded, firsts, over = [], [], threading.Event()


def ask_prompts():
    while not over.is_set():
        began = time.monotonic()
        times = stream(o.prompt, 1)
        firsts.append((began, times[0]))


streams = [threading.Thread(target=lambda: decoded.append(stream(5, o.tokens))) for _ in range(o.streams)]
clients = [threading.Thread(target=ask_prompts) for _ in range(o.clients)]
for x in streams:
    x.start()
time.sleep(0.3)
began = time.monotonic()
for x in clients:
    x.start()
for x in streams:
    x.join()
over.set()
ended = time.monotonic()
for x in clients:
    x.join()
# While all streams decode and prompts are computed.
until = min(times[-1] for times in decoded)
gaps = [1e3 * (b - a) for times in decoded for a, b in zip(times, times[1:]) if began < a and b <= until]
tokens = sum(began < t <= until for times in decoded for t in times)
prompts = sum(began < t <= until for _, t in firsts)
print(json.dumps({
    "tbt_p50_ms": at(gaps, 0.5),
    "tbt_p99_ms": at(gaps, 0.99),
    "tbt_max_ms": at(gaps, 1),
    "tokens_per_s": round(tokens / (until - began), 1),
    "prompt_tokens_per_s": round(prompts * o.prompt / (until - began), 1),
    "ttft_p50_ms": at([1e3 * (b - a) for a, b in firsts], 0.5),
    "seconds": round(ended - began, 1),
}))
