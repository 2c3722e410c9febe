"""The same decode iteration in PyTorch: SDPA over a static KV cache, one CUDA graph per iteration.

What step_bench is compared with, in the same run on the same device:
    python3 torch_decode.py [--batch 64] [--context 4096] [--iterations 30]
Random weights in the shape of LLaMA-3-8B, bf16, fused QKV and gate+up products, greedy sampling.
"""
import argparse
import statistics

import torch
import torch.nn.functional as F

LAYERS, HIDDEN, FEED_FORWARD, HEADS, KV_HEADS, DIM, VOCABULARY = 32, 4096, 14336, 32, 8, 128, 128256


def rms_norm(x, weight):
    return F.rms_norm(x, (x.shape[-1],), weight, 1e-5)


def rotate(x, cosine, sine):
    low, high = x.chunk(2, -1)
    return torch.cat((low * cosine - high * sine, high * cosine + low * sine), -1)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--batch", type=int, default=64)
    parser.add_argument("--context", type=int, default=4096)
    parser.add_argument("--iterations", type=int, default=30)
    o = parser.parse_args()
    torch.manual_seed(42)
    device, dtype = "cuda", torch.bfloat16

    def weight(n, k):
        return torch.randn(n, k, device=device, dtype=dtype) * 0.02

    layers = [
        dict(
            norm1=torch.ones(HIDDEN, device=device, dtype=dtype),
            qkv=weight((HEADS + 2 * KV_HEADS) * DIM, HIDDEN),
            out=weight(HIDDEN, HEADS * DIM),
            norm2=torch.ones(HIDDEN, device=device, dtype=dtype),
            gate_up=weight(2 * FEED_FORWARD, HIDDEN),
            down=weight(HIDDEN, FEED_FORWARD),
        )
        for _ in range(LAYERS)
    ]
    table, head = weight(VOCABULARY, HIDDEN), weight(VOCABULARY, HIDDEN)
    room = o.context + 64
    cache = torch.randn(LAYERS, 2, o.batch, KV_HEADS, room, DIM, device=device, dtype=dtype)
    tokens = torch.arange(o.batch, device=device)
    position = torch.full((1,), o.context, device=device)
    frequencies = 500000.0 ** (-torch.arange(0, DIM, 2, device=device) / DIM)

    def iteration():
        x = F.embedding(tokens, table)
        angle = position * frequencies
        cosine, sine = angle.cos().to(dtype), angle.sin().to(dtype)
        for i, w in enumerate(layers):
            qkv = F.linear(rms_norm(x, w["norm1"]), w["qkv"]).view(o.batch, HEADS + 2 * KV_HEADS, 1, DIM)
            q, k, v = qkv.split((HEADS, KV_HEADS, KV_HEADS), 1)
            q, k = rotate(q, cosine, sine), rotate(k, cosine, sine)
            cache[i, 0].index_copy_(2, position, k)
            cache[i, 1].index_copy_(2, position, v)
#All positions up to the present one; the length is fixed in the graph.
            a = F.scaled_dot_product_attention(
                q, cache[i, 0][:, :, : o.context + 1], cache[i, 1][:, :, : o.context + 1], enable_gqa=True
            )
            x = x + F.linear(a.reshape(o.batch, HEADS * DIM), w["out"])
            gate, up = F.linear(rms_norm(x, w["norm2"]), w["gate_up"]).chunk(2, -1)
            x = x + F.linear(F.silu(gate) * up, w["down"])
        tokens.copy_(F.linear(x, head).argmax(-1))

    with torch.no_grad():
        side = torch.cuda.Stream()
        with torch.cuda.stream(side):
            for _ in range(3):
                iteration()
        torch.cuda.synchronize()
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            iteration()
        times = []
        for _ in range(o.iterations):
            begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
            begin.record()
            graph.replay()
            end.record()
            torch.cuda.synchronize()
            times.append(begin.elapsed_time(end))
    best, middle = min(times), statistics.median(times)
    print(f"PyTorch {torch.__version__}, SDPA and a CUDA graph, batch {o.batch}, context {o.context}")
    print(f"iteration {best:.3f} ms best, {middle:.3f} median: {o.batch / middle * 1000:.0f} tokens/s median")


main()
