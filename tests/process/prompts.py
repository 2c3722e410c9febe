"""What a short prompt feels of a long one, and streams of prompts beside them: prints a line of JSON.

usage: prompts.py PORT [--rounds N] [--long TOKENS] [--short TOKENS]

Prompts are English words of one token each in the default model, different in every round, so that no KV is found.
"""
import argparse
import json
import statistics
import threading
import time
import urllib.request

options = argparse.ArgumentParser()
options.add_argument("port", type=int)
options.add_argument("--rounds", type=int, default=5)
options.add_argument("--long", type=int, default=7000)
options.add_argument("--short", type=int, default=50)
o = options.parse_args()
url = f"http://127.0.0.1:{o.port}/v1"
model = json.load(urllib.request.urlopen(f"{url}/models", timeout=60))["data"][0]["id"]
asked = 0


def stream(words, tokens):
    """The times of its tokens, in seconds from the question on."""
    global asked
    asked += 1
    body = {"model": model, "prompt": "the " * words, "max_tokens": tokens, "stream": True, "ignore_eos": True,
            "cache_salt": str(asked)}
    request = urllib.request.Request(f"{url}/completions", json.dumps(body).encode(),
                                     {"content-type": "application/json"})
    began, times = time.monotonic(), []
    with urllib.request.urlopen(request, timeout=600) as reply:
        for line in reply:
            if line.startswith(b"data: {") and json.loads(line[6:])["choices"]:
                times.append(time.monotonic() - began)
    return times


def beside(words, tokens, work):
    """The times of a stream, while `work` is done."""
    found = []
    thread = threading.Thread(target=lambda: found.append(stream(words, tokens)))
    thread.start()
    time.sleep(0.5)
    work()
    thread.join()
    return found[0]


def gaps(times):
    return sorted(1e3 * (b - a) for a, b in zip(times, times[1:]))


stream(o.short, 2)
stream(o.long, 1)
alone = [stream(o.short, 2)[0] for _ in range(o.rounds)]
long_alone = [stream(o.long, 1)[0] for _ in range(2)]
behind, long_behind = [], []
for _ in range(o.rounds):
    long_behind.append(beside(o.long, 1, lambda: behind.append(stream(o.short, 2)[0]))[0])
decoded = gaps(beside(5, 300, lambda: [stream(1000, 1) for _ in range(4)]))
ratio = statistics.median(behind) / statistics.median(alone)
print(json.dumps({
    "short_alone_ms": round(1e3 * statistics.median(alone), 1),
    "short_behind_long_ms": round(1e3 * statistics.median(behind), 1),
    "short_behind_long_max_ms": round(1e3 * max(behind), 1),
    "ratio": round(ratio, 2),
    "long_alone_s": round(min(long_alone), 2),
    "long_with_short_s": round(statistics.median(long_behind), 2),
    "tbt_beside_prompts_p50_ms": round(decoded[len(decoded) // 2], 1),
    "tbt_beside_prompts_p99_ms": round(decoded[int(0.99 * len(decoded))], 1),
}))
