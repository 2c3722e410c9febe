"""The files of a run in which all is well, for the checker's test to break."""
import json
from datetime import datetime, timezone

SECRET = "lam_0123456789"
SLOTS = {"free": 10, "used": 0, "cached": 0, "parity": 0, "orphan": 0, "total": 10}

DRAINED_PAGE = """lamella_batches_in_flight 0
lamella_failovers_total 1
lamella_kv_slots{role="attention",state="free",worker="attention-0"} 9
lamella_kv_slots{role="attention",state="used",worker="attention-0"} 1
lamella_kv_slots{role="attention",state="free",worker="attention-1"} 10
lamella_kv_slots{role="attention",state="used",worker="attention-1"} 0
lamella_kv_slots{role="attention",state="free",worker="attention-2"} 0
lamella_kv_slots{role="attention",state="used",worker="attention-2"} 0
lamella_kv_integrity_failures_total{where="rebuild"} 0
lamella_kv_integrity_failures_total{where="transfer"} 0
lamella_kv_digests_compared_total 12
"""


def log_line(at, message, level="info"):
    stamp = datetime.fromtimestamp(1e9 + at, timezone.utc).strftime("%Y-%m-%dT%H:%M:%S.%f") + "Z"
    return json.dumps({"ts": stamp, "level": level, "msg": message}, separators=(",", ":"))


def chunk(tokens, first, finish=None):
    logprobs = {"tokens": tokens, "token_logprobs": [-1.0] * len(tokens),
                "text_offset": list(range(first, first + len(tokens)))}
    return {"choices": [{"index": 0, "text": "".join(tokens), "logprobs": logprobs if tokens else None,
                         "finish_reason": finish}], "usage": None}


def answer(identity, request, at, stream=False):
    """What a client logs of one complete answer "abcd"."""
    usage = {"prompt_tokens": 1, "completion_tokens": 4}
    lines = [{"event": "send", "request": request, "via": "direct", "stream": stream, "cancel": None},
             {"event": "connected", "port": 1000 + at},
             {"event": "status", "status": 200, "headers": {"content-type": "text/event-stream" if stream else "json"}}]
    if stream:
        events = [chunk(["a"], 0), chunk(["b", "c"], 1), chunk(["d"], 3), chunk([], 4, "length"),
                  {"choices": [], "usage": usage}]
        lines += [{"event": "data", "data": json.dumps(x)} for x in events] + [{"event": "data", "data": "[DONE]"}]
    else:
        lines.append({"event": "body", "body": json.dumps(chunk(list("abcd"), 0, "length") | {"usage": usage})})
    lines.append({"event": "end", "how": "finished", "detail": ""})
    return [{"t": 1e9 + at + i * 0.01, "id": identity, **x} for i, x in enumerate(lines)]


def good_run():
    """File name -> list of objects, or of lines of text."""
    idle = {"epochs": {"attention/main": 2}, "workers": [{"seat": "model/0"}], "gateway": {"requests": 0},
            "requests": {"running": 0, "waiting": 0}, "pools": [{"name": "main", "slots": SLOTS, "references": {"counted": 0, "held": 0}}]}
    busy = json.loads(json.dumps(idle))
    busy["pools"][0] |= {"slots": SLOTS | {"free": 6, "used": 3, "orphan": 1}, "references": {"counted": 5, "held": 5}}
    process = {"process": "gateway", "pid": 1, "rss_kib": 50000, "threads": 5, "descriptors": 20}
    samples = [{"t": 1e9, "phase": "idle", "status": idle}, {"t": 1e9, "phase": "idle", **process},
               {"t": 1e9 + 5, "phase": "load", "status": busy},
               {"t": 1e9 + 5, "probe": "asked", "ready": 200, "answer": 200, "ready_after": 200, "seconds": 0.1},
               {"t": 1e9 + 9, "phase": "drained", "status": idle}, {"t": 1e9 + 9, "phase": "drained", **process},
               {"t": 1e9 + 9, "phase": "drained", "metrics": DRAINED_PAGE}]
    request = {"path": "/v1/completions", "body": {"max_tokens": 4, "logprobs": 1}}
    sits = "worker {} seat=model/0 incarnation={} worker=model-0 host=model-0 pid=7"
    ended = "request_id={} request=1 outcome=done code=- e2e_ms=10.0"
    return {
        "requests.json": [{"index": 0, **request}, {"index": 1, **request}],
        "golden.jsonl": answer("g0.0", 0, 0) + answer("g1.0", 1, 0),
        "client.jsonl": answer("r0.0", 0, 4) + answer("r1.0", 1, 5, stream=True),
        "gateway.log": [log_line(1, sits.format("joined", 1)), log_line(2, "epoch open epoch=1 replicas=1"),
                        log_line(4.1, ended.format("r0.0")), log_line(5.1, ended.format("r1.0")),
                        log_line(6, sits.format("lost", 1)), log_line(7, sits.format("joined", 2)),
                        log_line(7.1, "epoch open epoch=2 replicas=1")],
        "model-0.log": [log_line(1, "joined seat=model/0 incarnation=1")],
        "samples.jsonl": samples,
        "exits.jsonl": [{"t": 1e9 + 6, "name": "model-0", "pid": 7, "code": -9, "cause": "kill"},
                        {"t": 1e9 + 10, "name": "gateway", "pid": 1, "code": 0, "cause": "end"}],
        "nemesis.jsonl": [{"t": 1e9 + 5.9, "event": "begin", "number": 0, "kind": "kill", "targets": ["model-0"]},
                          {"t": 1e9 + 8, "event": "effect", "number": 0, "kind": "kill", "targets": ["model-0"],
                           "lost": True, "closed": None, "counted": 1, "whole": True, "seconds": 2},
                          {"t": 1e9 + 8, "event": "healed", "whole": True, "seconds": 0}],
        "proxy.jsonl": [],
        "secrets.json": [SECRET],
    }
