#!/usr/bin/env python3
"""Tokens/s of OpenVINO GenAI's continuous batching: a JSON list of [test, batch, context, tokens/s]. Called by
compare. The KV cache and the quantisation of activations are what OpenVINO chooses for the processor."""
import argparse
import json
import time

import numpy
import openvino
import openvino_genai


def arguments():
    numbers = lambda text: [int(x) for x in text.split(",")]
    p = argparse.ArgumentParser(description=__doc__)
    p.add_argument("model")
    p.add_argument("--threads", type=int, required=True)
    p.add_argument("--batch", type=numbers, required=True)
    p.add_argument("--context", type=numbers, required=True)
    p.add_argument("--prefill", type=numbers, required=True)
    p.add_argument("--iterations", type=int, required=True)
    return p.parse_args()


def pipeline(options):
    x = openvino_genai.SchedulerConfig()
    x.cache_size = 4  # GB
    x.enable_prefix_caching = False
    x.max_num_batched_tokens = max(options.prefill + options.context + [2048])
    x.max_num_seqs = max(options.batch)
    return openvino_genai.ContinuousBatchingPipeline(options.model, x, "CPU",
                                                     {"INFERENCE_NUM_THREADS": options.threads})


def prompt(length, number):
    return openvino.Tensor(numpy.array([[10 + (i * 7 + number) % 1000 for i in range(length)]], dtype=numpy.int64))


def wanted(tokens):
    x = openvino_genai.GenerationConfig()
    x.max_new_tokens = x.min_new_tokens = tokens
    x.ignore_eos = True
    x.do_sample = False
    x.apply_chat_template = False
    return x


def step(pipe):
    began = time.monotonic()
    pipe.step()
    return time.monotonic() - began


def decoding(pipe, options, batch, context):
    """Best tokens/s of an iteration in which every sequence decodes."""
    handles = [pipe.add_request(i, prompt(context, i), wanted(options.iterations + batch + 8)) for i in range(batch)]
    begun = 0
    while begun < batch:  # a handle can be read once its prompt is computed
        step(pipe)
        begun = sum(1 for x in handles if x.can_read())
    best = min(step(pipe) for _ in range(options.iterations))
    while pipe.has_non_finished_requests():
        pipe.step()
    return batch / best


def prefill(pipe, length):
    handle = pipe.add_request(0, prompt(length, 0), wanted(1))
    seconds = 0
    while pipe.has_non_finished_requests():
        seconds += step(pipe)
    assert handle.can_read()
    return length / seconds


def main():
    options = arguments()
    pipe = pipeline(options)
    prefill(pipe, 32)
    rows = []
    for context in options.context:
        for batch in options.batch:
            rows.append(["decode", batch, context, decoding(pipe, options, batch, context)])
    for length in options.prefill:
        rows.append(["prefill", 1, length, prefill(pipe, length)])
    print(json.dumps(rows))


if __name__ == "__main__":
    main()
