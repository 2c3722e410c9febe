"""Whether a trace of worker processes is whole. Without a second word it says what is wrong.

usage: trace_check.py TRACE [quiet]; exit code 1: it is not, or has too little in it
"""
import collections
import json
import sys

LAYERS = 3
HALF_A_NANOSECOND = 0.0011  # times are written as decimal microseconds


class Wrong(Exception):
    pass


def check(holds, *words):
    if not holds:
        raise Wrong(" ".join(map(str, words)))


def end(span):
    return span["ts"] + span["dur"]


def nest(spans):
    """Spans of a lane lie apart or within each other."""
    above = []
    for span in sorted(spans, key=lambda x: (x["ts"], -x["dur"])):
        while above and end(above[-1]) <= span["ts"] + HALF_A_NANOSECOND:
            above.pop()
        check(not above or end(span) <= end(above[-1]) + HALF_A_NANOSECOND, "overlap:", above and above[-1], span)
        above.append(span)


def whole_iterations(spans):
    """By number, without the first and the last, which the recording may have cut."""
    by_number = collections.defaultdict(list)
    for span in spans:
        if "args" in span and span["cat"] != "other":
            by_number[span["args"]["iteration"]].append(span)
    return {number: by_number[number] for number in sorted(by_number)[1:-1]}


def named(spans, name):
    found = [x for x in spans if x["name"] == name]
    check(len(found) == 1, len(found), "spans", name)
    return found[0]


def main():
    with open(sys.argv[1], encoding="utf-8") as file:
        trace = json.load(file)
    about = trace["otherData"]
    check(not about["left_out"], "left out:", about["left_out"])
    error = {w["process"]: w["error_us"] for w in about["workers"]}
    seats = {w["process"]: w["seat"] for w in about["workers"]}
    threads, lanes = {}, collections.defaultdict(list)
    for event in trace["traceEvents"]:
        if event["ph"] == "M" and event["name"] == "thread_name":
            threads[event["pid"], event["tid"]] = event["args"]["name"].split(",")[0]
        if event["ph"] == "X":
            lanes[event["pid"], event["tid"]].append(event)
    for spans in lanes.values():
        nest(spans)
    replicas, shards = {}, collections.defaultdict(dict)
    for (process, thread), spans in lanes.items():
        stream = threads[process, thread]
        if seats[process].startswith("model/"):
            replicas[stream] = (process, whole_iterations(spans))
        elif seats[process].startswith("attention/"):
            shards[stream][process] = whole_iterations(spans)
    compared = 0
    for stream, (replica, iterations) in replicas.items():
        if not stream.startswith("batch"):
            continue
        for number, spans in iterations.items():
            slices = [x["name"] for x in spans if x["name"].startswith("slice")]
            check(slices == [f"slice {k}" for k in range(LAYERS + 1)], stream, number, slices)
            for shard, theirs in shards[stream].items():
                if number not in theirs:
                    continue
                slack = error[replica] + error[shard] + HALF_A_NANOSECOND
                for layer in range(LAYERS):
                    sent, came = named(spans, f"send_q {layer}"), named(spans, f"recv_attention {layer}")
                    old, new = (named(theirs[number], f"attend_{which} {layer}") for which in ("previous", "new"))
                    # A step takes its time before it looks for the frame, which may come in between.
                    check(end(old) >= sent["ts"] - slack, "attention before its Q", sent, old, slack)
                    check(new["ts"] >= end(old) - HALF_A_NANOSECOND, "the own position first", old, new)
                    # The stream tells the ring before it takes its own time: what waits may have gone on.
                    check(new["ts"] <= end(came) + slack, "attention after the wait for it", came, new, slack)
                    compared += 1
    check(compared >= 2 * LAYERS, "only", compared, "layers compared")
    print(f"{compared} layers of shards lie within the waits of their replica")


try:
    main()
except Wrong as wrong:
    if len(sys.argv) < 3:
        print(f"{sys.argv[1]}: {wrong}")
    sys.exit(1)
