"""Decoding of a batch in which every sequence is held to a schema, beside one of free sequences: prints a line of JSON.

usage: schema_bench.py PORT [--rounds N] [--batch N] [--tokens N]

Counted are tokens between the first token of the last sequence and the last token of the first one, so that the batch is
full all the while. Rounds of both kinds come in turns; no sequence can end before its bound.
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
options.add_argument("--batch", type=int, default=32)
options.add_argument("--tokens", type=int, default=200)
o = options.parse_args()
url = f"http://127.0.0.1:{o.port}/v1"
model = json.load(urllib.request.urlopen(f"{url}/models", timeout=60))["data"][0]["id"]
schema = {"type": "array", "minItems": 1000, "items": {
    "type": "object", "additionalProperties": False, "required": ["name", "kind", "count", "note"],
    "properties": {"name": {"type": "string", "minLength": 1, "maxLength": 40},
                   "kind": {"enum": ["red", "green", "blue"]},
                   "count": {"type": "integer", "minimum": 0, "maximum": 9999},
                   "note": {"type": "string"},
                   "day": {"type": "string", "format": "date"}}}}
held = {"response_format": {"type": "json_schema", "json_schema": {"name": "list", "schema": schema}}}
free = {"ignore_eos": True}


def stream(seed, more, times):
    body = {"model": model, "prompt": "A list of things:\n", "max_tokens": o.tokens, "stream": True, "temperature": 1,
            "seed": seed, "stream_options": {"include_usage": True, "continuous_usage_stats": True}} | more
    request = urllib.request.Request(f"{url}/completions", json.dumps(body).encode(),
                                     {"content-type": "application/json"})
    with urllib.request.urlopen(request, timeout=600) as reply:
        for line in reply:
            event = json.loads(line[6:]) if line.startswith(b"data: {") else {"choices": []}
            if event["choices"]:
                times.append((time.monotonic(), event["usage"]["completion_tokens"]))


def tokens_per_second(more, first_seed):
    all_times = [[] for _ in range(o.batch)]
    threads = [threading.Thread(target=stream, args=(first_seed + i, more, times))
               for i, times in enumerate(all_times)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    begin, end = max(times[0][0] for times in all_times), min(times[-1][0] for times in all_times)
    return sum(until(end, times) - until(begin, times) for times in all_times) / (end - begin)


def until(moment, times):
    return max(tokens for t, tokens in times if t <= moment)


for kind in (free, held):
    tokens_per_second(kind, 1)  # what is made once
found = {"free": [], "held": []}
for n in range(o.rounds):
    found["free"].append(tokens_per_second(free, 1000 * n))
    found["held"].append(tokens_per_second(held, 1000 * n))
medians = {name: statistics.median(values) for name, values in found.items()}
print(json.dumps({"free_tokens_per_second": round(medians["free"]), "held_tokens_per_second": round(medians["held"]),
                  "share": round(medians["held"] / medians["free"], 3)}))
