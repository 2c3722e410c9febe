#!/usr/bin/env python3
"""Tokens/s of llama.cpp by its C API: a JSON list of [test, batch, context, tokens/s]. Called by compare."""
import argparse
import ctypes
import json
import time

import llama_cpp as ll


def arguments():
    numbers = lambda text: [int(x) for x in text.split(",")]
    p = argparse.ArgumentParser(description=__doc__)
    p.add_argument("model")
    p.add_argument("--threads", type=int, required=True)
    p.add_argument("--flash", choices=["on", "off"], required=True)
    p.add_argument("--batch", type=numbers, required=True)
    p.add_argument("--context", type=numbers, required=True)
    p.add_argument("--prefill", type=numbers, required=True)
    p.add_argument("--iterations", type=int, required=True)
    return p.parse_args()


class Context:
    """Room for `sequences` sequences of `length` tokens, each with a KV cache of its own."""

    chunk = 512

    def __init__(self, model, options, sequences, length):
        x = ll.llama_context_default_params()
        # Lengths of a sequence are multiples of 256.
        x.n_ctx = sequences * ((length + 255) // 256 * 256)
        x.n_batch = x.n_ubatch = self.chunk
        x.n_seq_max = sequences
        x.n_threads = x.n_threads_batch = options.threads
        x.flash_attn_type = 1 if options.flash == "on" else 0
        x.kv_unified = False
        self.context = ll.llama_init_from_model(model, x)
        if not self.context:
            raise SystemExit("llama.cpp: no context of that size")
        self.memory = ll.llama_get_memory(self.context)
        self.batch = ll.llama_batch_init(max(self.chunk, sequences), 0, 1)

    def close(self):
        ll.llama_batch_free(self.batch)
        ll.llama_free(self.context)

    def decode(self, rows, wanted):
        """rows: (token, position, sequence) each; `wanted`: those whose logits are computed."""
        b = self.batch
        b.n_tokens = len(rows)
        for i, (token, position, sequence) in enumerate(rows):
            b.token[i], b.pos[i], b.n_seq_id[i] = token, position, 1
            b.seq_id[i][0] = sequence
            b.logits[i] = i in wanted
        if ll.llama_decode(self.context, b) != 0:
            raise SystemExit("llama.cpp: decoding failed")
        # The first value of the last row: all of them are there.
        ctypes.cast(ll.llama_get_logits(self.context), ctypes.POINTER(ctypes.c_float))[0]

    def fill(self, length):
        """A prompt in sequence 0. Returns seconds."""
        began = time.monotonic()
        for first in range(0, length, self.chunk):
            rows = [(10 + (i * 7) % 1000, i, 0) for i in range(first, min(length, first + self.chunk))]
            self.decode(rows, {len(rows) - 1} if first + self.chunk >= length else set())
        return time.monotonic() - began


def decoding(model, options, batch, context):
    """Best tokens/s of an iteration."""
    x = Context(model, options, batch, context + options.iterations + 8)
    x.fill(context)
    for sequence in range(1, batch):
        ll.llama_memory_seq_cp(x.memory, 0, sequence, -1, -1)
    best = float("inf")
    for n in range(options.iterations):
        rows = [(10 + (n * 13 + s) % 1000, context + n, s) for s in range(batch)]
        began = time.monotonic()
        x.decode(rows, set(range(batch)))
        best = min(best, time.monotonic() - began)
    x.close()
    return batch / best


def prefill(model, options, length):
    x = Context(model, options, 1, length + 8)
    x.fill(32)
    ll.llama_memory_clear(x.memory, True)
    seconds = x.fill(length)
    x.close()
    return length / seconds


def main():
    options = arguments()
    ll.llama_log_set(quiet, None)
    ll.llama_backend_init()
    model = ll.llama_model_load_from_file(options.model.encode(), ll.llama_model_default_params())
    if not model:
        raise SystemExit(f"llama.cpp cannot load {options.model}")
    rows = []
    for context in options.context:
        for batch in options.batch:
            rows.append(["decode", batch, context, decoding(model, options, batch, context)])
    for length in options.prefill:
        rows.append(["prefill", 1, length, prefill(model, options, length)])
    print(json.dumps(rows))


@ll.llama_log_callback
def quiet(level, text, data):
    pass


if __name__ == "__main__":
    main()
