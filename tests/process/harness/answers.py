"""Invariants of answers: I1, I2, I3."""

# What may end a client's connection, and what may change its bytes.
MAY_BREAK = {"truncate", "reset", "half_close", "flip"}
MAY_CHANGE = {"flip"}


def injuries_of(evidence, attempt, ports):
    """What the proxy did to that connection; one that it reset at once has no port and no more than that."""
    if attempt.via != "proxy":
        return set()
    return ports.get(attempt.port, set()) if attempt.port is not None else {"reset"}


def i1_every_accepted_request_ends_once(evidence):
    """A client sees each request that was accepted end in one way, and the gateway's log tells it once."""
    problems = []
    ports = evidence.injured_ports()
    told = {}
    for line in evidence.gateway_lines("request_id="):
        words = line.words()
        told.setdefault(words["request_id"], []).append(words["outcome"])
    for x in evidence.attempts.values():
        injuries = injuries_of(evidence, x, ports)
        outcomes = told.get(x.identity, [])
        if len(outcomes) > 1:
            problems.append(f"{x.identity}: the gateway tells {len(outcomes)} ends")
        if x.how is None:
            problems.append(f"{x.identity}: no end at all")
        elif x.how == "broken" and not injuries & MAY_BREAK or x.how == "silent":
            problems.append(f"{x.identity}: {x.how} ({x.detail}), status {x.status}")
        elif x.how == "finished" and not injuries & MAY_CHANGE:
            if x.is_refused:
                if "retry-after" not in x.headers:
                    problems.append(f"{x.identity}: refused with {x.status} and no Retry-After")
            elif not x.is_complete:
                problems.append(f"{x.identity}: status {x.status}, {x.dones} [DONE], errors {x.errors + x.garbled}")
            elif outcomes != ["done"]:
                problems.append(f"{x.identity}: complete, but the gateway tells {outcomes}")
        elif x.how == "cancelled" and outcomes not in ([], ["done"], ["cancelled"]):
            problems.append(f"{x.identity}: cancelled by its client, and the gateway tells {outcomes}")
    if not any(x.is_complete for x in evidence.attempts.values()):
        problems.append("no request was complete")
    return problems


def i2_positions_come_once_and_in_order(evidence):
    """As many tokens as counted, each choice finished once and nothing after that, [DONE] once and last."""
    problems = []
    ports = evidence.injured_ports()
    for x in evidence.attempts.values():
        if injuries_of(evidence, x, ports) & MAY_CHANGE or x.status != 200:
            continue
        request = evidence.requests[x.request]
        limit = request["body"]["max_tokens"]
        for index, choice in x.choices.items():
            where = f"{x.identity} choice {index}"
            if len(choice.tokens) > limit:
                problems.append(f"{where}: {len(choice.tokens)} tokens, {limit} at most")
            if choice.after_finish or len(choice.finishes) > 1:
                problems.append(f"{where}: goes on after its end, or ends {len(choice.finishes)} times")
            if choice.offsets != sorted(choice.offsets):
                problems.append(f"{where}: offsets go back")
        if x.dones > 1 or x.after_done:
            problems.append(f"{x.identity}: {x.dones} [DONE], {x.after_done} events after it")
        if not x.is_complete:
            continue
        if len(x.choices) != request["body"].get("n", 1) or not all(c.finishes for c in x.choices.values()):
            problems.append(f"{x.identity}: {len(x.choices)} choices, not all of them finished")
        counted = (x.usage or {}).get("completion_tokens")
        # The token that ends a choice by itself is counted and not shown.
        seen = sum(len(c.tokens) + c.finishes.count("stop") for c in x.choices.values())
        if counted is None or (request["body"].get("logprobs") and counted != seen):
            problems.append(f"{x.identity}: {seen} tokens came, {counted} are counted")
    return problems


def counted_in(usage):
    """Without what was found in the prefix cache: that depends on who came before."""
    return usage and {k: v for k, v in usage.items() if k != "prompt_tokens_details"}


def i3_tokens_are_golden(evidence):
    """Tokens, probabilities and text of the undisturbed run, whole or as far as an answer came."""
    problems = []
    ports = evidence.injured_ports()
    for x in evidence.golden.values():
        if not x.is_complete:
            problems.append(f"golden request {x.request} is not complete: {x.how} {x.status} {x.errors}")
    for x in evidence.attempts.values():
        golden = evidence.golden.get(x.request)
        if golden is None:
            problems.append(f"{x.identity}: request {x.request} has no golden answer")
            continue
        if injuries_of(evidence, x, ports) & MAY_CHANGE:
            continue
        for index, got in x.choices.items():
            where = f"{x.identity} (request {x.request}) choice {index}"
            want = golden.choices.get(index)
            if want is None:
                problems.append(f"{where}: the golden answer has no such choice")
                continue
            if got.tokens != want.tokens[:len(got.tokens)]:
                at = next(i for i, t in enumerate(got.tokens) if i >= len(want.tokens) or t != want.tokens[i])
                problems.append(f"{where}: token {at} is {got.tokens[at]}, not {want.tokens[at:at + 1]}")
            elif not want.text.startswith(got.text):
                problems.append(f"{where}: the text is another one")
            elif x.is_complete and (got.text != want.text or len(got.tokens) != len(want.tokens)
                                    or got.finishes != want.finishes):
                problems.append(f"{where}: {len(got.tokens)} tokens and end {got.finishes}, not {len(want.tokens)} "
                                f"and {want.finishes}")
        if x.is_complete and counted_in(x.usage) != counted_in(golden.usage):
            problems.append(f"{x.identity}: usage {x.usage}, not {golden.usage}")
    return problems
