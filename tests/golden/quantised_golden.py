"""Makes the expected values of quantised weights for tests/gpu/kernels/quantised_test.cpp.

Run in a throw-away environment (a minute, and some minutes to build llama.cpp):

    python3 -m venv venv
    venv/bin/pip install numpy==2.4.6 gguf==0.19.0
    CMAKE_ARGS=-DGGML_NATIVE=OFF venv/bin/pip install --no-binary llama-cpp-python \\
        llama-cpp-python==0.3.2
    venv/bin/python tests/golden/quantised_golden.py

Blocks and files are made by llama.cpp's own quantisers, besides blocks of random bits. The oracle of
what they mean is the package `gguf`; llama.cpp's own dequantisers must agree with it bit for bit, or
nothing is written. The oracle of logits is a forward pass in float64, below; llama.cpp's logits are
compared with them.

Written to tests/data/golden/ (formats: tests/gpu/kernels/quantised_test.cpp, which reads them):

    blocks.bin              blocks of every quantised type, and their elements in float32
    mixed_4_bit.gguf        a tiny LLaMA model in the usual mix of 4-bit files (Q4_K_M)
    mixed_4_bit_logits.bin  some tokens, and all logits after each of them
"""

import ctypes
import pathlib
import struct
import tempfile

import gguf
import llama_cpp
import numpy as np
from gguf import GGMLQuantizationType as Type

OUT = pathlib.Path(__file__).resolve().parent.parent / "data/golden"
TYPES = [Type.Q8_0, Type.Q4_0, Type.Q4_1, Type.Q5_0, Type.Q5_1, Type.Q2_K, Type.Q3_K, Type.Q4_K,
         Type.Q5_K, Type.Q6_K, Type.IQ4_NL, Type.IQ4_XS]
# Where the halves of a block lie: random bits there must be finite numbers.
HALVES = {Type.Q4_1: [0, 2], Type.Q5_1: [0, 2], Type.Q2_K: [80, 82], Type.Q3_K: [108],
          Type.Q4_K: [0, 2], Type.Q5_K: [0, 2], Type.Q6_K: [208]}
ggml = ctypes.CDLL(str(next((pathlib.Path(llama_cpp.__file__).parent / "lib").glob(
    "libggml-base.so"))))


# --- blocks ---------------------------------------------------------------------------------------

def quantise(kind, values):
    """Rows of values as blocks, by llama.cpp."""
    rows, width = values.shape
    size = gguf.GGML_QUANT_SIZES[kind]
    out = np.zeros(values.size // size[0] * size[1], np.uint8)
    values = np.ascontiguousarray(values, np.float32)
    ggml.ggml_quantize_chunk.restype = ctypes.c_size_t
    written = ggml.ggml_quantize_chunk(
        ctypes.c_int(int(kind)), values.ctypes.data_as(ctypes.c_void_p),
        out.ctypes.data_as(ctypes.c_void_p), ctypes.c_int64(0), ctypes.c_int64(rows),
        ctypes.c_int64(width), None)
    assert written == out.size
    return out.reshape(-1, size[1])


def dequantise_by_llama(kind, blocks):
    elements = gguf.GGML_QUANT_SIZES[kind][0]
    out = np.zeros((len(blocks), elements), np.float32)
    name = kind.name.lower().replace("_k", "_K")
    function = getattr(ggml, "dequantize_row_" + name)
    function(np.ascontiguousarray(blocks).ctypes.data_as(ctypes.c_void_p),
             out.ctypes.data_as(ctypes.c_void_p), ctypes.c_int64(out.size))
    return out


def blocks_of(kind, random):
    """Ordinary values, some with outliers, a constant, zeros, values whose scales are no normal
    halves, large ones; and random bits."""
    elements, size = gguf.GGML_QUANT_SIZES[kind]
    values = random.standard_normal((6, 256), np.float32)
    values[1] *= 1 + 20 * (random.random(256) > 0.97)
    values[2] = 0.5
    values[3] = 0
    values[4] *= 2e-6
    values[5] = 300 * values[5] + 100
    made = quantise(kind, values)
    bits = random.integers(0, 256, (4 * 256 // elements, size), np.uint8)
    for at in HALVES.get(kind, [0]):
        halves = random.integers(0, 0x7c00, len(bits), np.uint16)  # no infinity, no NaN
        halves |= random.integers(0, 2, len(bits), np.uint16) << 15
        bits[:, at:at + 2] = halves.view(np.uint8).reshape(-1, 2)
    return np.concatenate([made, bits])


def write_blocks(path):
    random = np.random.default_rng(1)
    with path.open("wb") as out:
        out.write(struct.pack("<8sI", b"LAMBLOC1", len(TYPES)))
        for kind in TYPES:
            blocks = blocks_of(kind, random)
            values = gguf.quants.dequantize(blocks, kind)
            assert np.isfinite(values).all()
            assert (values.view(np.uint32) == dequantise_by_llama(kind, blocks).view(np.uint32)).all()
            out.write(struct.pack("<II", int(kind), len(blocks)))
            out.write(blocks.tobytes())
            out.write(values.astype("<f4").tobytes())
            print(f"{kind.name}: {len(blocks)} blocks, {values.size} elements, llama.cpp agrees")


# --- a model --------------------------------------------------------------------------------------

# Attention is 128 wide, no multiple of 256: the output projection falls back to blocks of 32.
WIDTH, HEADS, KV_HEADS, DIM, INNER, VOCABULARY, EPSILON, BASE = 256, 4, 2, 32, 256, 40, 1e-5, 10000.0


def write_model(path):
    """In f16, for llama.cpp to quantise."""
    random = np.random.default_rng(2)
    out = gguf.GGUFWriter(str(path), "llama")
    out.add_name("Mixed")
    out.add_block_count(1)
    out.add_context_length(256)
    out.add_embedding_length(WIDTH)
    out.add_feed_forward_length(INNER)
    out.add_head_count(HEADS)
    out.add_head_count_kv(KV_HEADS)
    out.add_key_length(DIM)
    out.add_value_length(DIM)
    out.add_rope_dimension_count(DIM)
    out.add_rope_freq_base(BASE)
    out.add_layer_norm_rms_eps(EPSILON)
    out.add_vocab_size(VOCABULARY)
    out.add_tokenizer_model("gpt2")
    out.add_tokenizer_pre("smollm")
    out.add_token_list([chr(0x41 + i) for i in range(VOCABULARY)])
    out.add_token_types([1] * VOCABULARY)
    out.add_token_merges(["A B"])

    def matrix(name, rows, inputs, deviation):
        weight = random.standard_normal((rows, inputs)) * deviation
        out.add_tensor(name, weight.astype(np.float16))

    def norm(name):
        out.add_tensor(name, (1 + 0.1 * random.standard_normal(WIDTH)).astype(np.float32))

    matrix("token_embd.weight", VOCABULARY, WIDTH, 0.3)
    norm("blk.0.attn_norm.weight")
    matrix("blk.0.attn_q.weight", HEADS * DIM, WIDTH, WIDTH ** -0.5)
    matrix("blk.0.attn_k.weight", KV_HEADS * DIM, WIDTH, WIDTH ** -0.5)
    matrix("blk.0.attn_v.weight", KV_HEADS * DIM, WIDTH, WIDTH ** -0.5)
    matrix("blk.0.attn_output.weight", WIDTH, HEADS * DIM, (HEADS * DIM) ** -0.5)
    norm("blk.0.ffn_norm.weight")
    matrix("blk.0.ffn_gate.weight", INNER, WIDTH, WIDTH ** -0.5)
    matrix("blk.0.ffn_up.weight", INNER, WIDTH, WIDTH ** -0.5)
    matrix("blk.0.ffn_down.weight", WIDTH, INNER, INNER ** -0.5)
    norm("output_norm.weight")
    out.write_header_to_file()
    out.write_kv_data_to_file()
    out.write_tensors_to_file()
    out.close()


def quantise_model(source, target):
    params = llama_cpp.llama_model_quantize_default_params()
    params.ftype = llama_cpp.LLAMA_FTYPE_MOSTLY_Q4_K_M
    params.nthread = 1
    failed = llama_cpp.llama_model_quantize(str(source).encode(), str(target).encode(),
                                            ctypes.byref(params))
    assert failed == 0


def logits_of(path, tokens):
    """After each token, in float64 on the dequantised weights."""
    weights = {t.name: gguf.quants.dequantize(t.data, t.tensor_type).astype(np.float64)
               for t in gguf.GGUFReader(str(path)).tensors}
    kinds = {t.name: t.tensor_type.name for t in gguf.GGUFReader(str(path)).tensors}
    print("  ".join(f"{name} {kind}" for name, kind in kinds.items()))

    def norm(x, name):
        return x / np.sqrt((x * x).mean(axis=-1, keepdims=True) + EPSILON) * weights[name]

    def rotate(x):
        """Pairs of neighbours; x is [tokens, heads, DIM]."""
        angle = np.outer(np.arange(len(x)), BASE ** (-np.arange(0, DIM, 2) / DIM))[:, None, :]
        a, b = x[..., 0::2], x[..., 1::2]
        return np.stack([a * np.cos(angle) - b * np.sin(angle),
                         b * np.cos(angle) + a * np.sin(angle)], axis=-1).reshape(x.shape)

    x = weights["token_embd.weight"][tokens]
    h = norm(x, "blk.0.attn_norm.weight")
    project = lambda part, heads: (h @ weights[f"blk.0.attn_{part}.weight"].T).reshape(-1, heads, DIM)
    q, k, v = rotate(project("q", HEADS)), rotate(project("k", KV_HEADS)), project("v", KV_HEADS)
    k, v = (np.repeat(t, HEADS // KV_HEADS, axis=1) for t in (k, v))
    scores = np.einsum("qhd,khd->hqk", q, k) / np.sqrt(DIM)
    scores[:, ~np.tri(len(tokens), dtype=bool)] = -np.inf
    scores = np.exp(scores - scores.max(axis=-1, keepdims=True))
    scores /= scores.sum(axis=-1, keepdims=True)
    attended = np.einsum("hqk,khd->qhd", scores, v).reshape(len(tokens), -1)
    x = x + attended @ weights["blk.0.attn_output.weight"].T
    h = norm(x, "blk.0.ffn_norm.weight")
    gate = h @ weights["blk.0.ffn_gate.weight"].T
    x = x + (gate / (1 + np.exp(-gate)) * (h @ weights["blk.0.ffn_up.weight"].T)) \
        @ weights["blk.0.ffn_down.weight"].T
    return norm(x, "output_norm.weight") @ weights["token_embd.weight"].T


def compare_with_llama(path, tokens, logits):
    llama = llama_cpp.Llama(str(path), n_ctx=256, n_threads=1, logits_all=True, verbose=False)
    llama.eval(tokens)
    other = np.array(llama.scores[:len(tokens)])
    error = np.abs(other - logits).max() / np.abs(logits).max()
    print(f"llama.cpp's logits on the same file: max|a-b|/max|b| {error:.3g}")
    assert error < 0.05  # it rounds activations to 8 bits


def main():
    llama_cpp.llama_backend_init()  # fills a table of all halves
    write_blocks(OUT / "blocks.bin")
    with tempfile.TemporaryDirectory() as folder:
        write_model(pathlib.Path(folder) / "f16.gguf")
        quantise_model(pathlib.Path(folder) / "f16.gguf", OUT / "mixed_4_bit.gguf")
    tokens = [int(t) for t in np.random.default_rng(3).integers(0, VOCABULARY, 24)]
    logits = logits_of(OUT / "mixed_4_bit.gguf", tokens)
    compare_with_llama(OUT / "mixed_4_bit.gguf", tokens, logits)
    with (OUT / "mixed_4_bit_logits.bin").open("wb") as out:
        out.write(struct.pack("<8sII", b"LAMMIXD1", *logits.shape))
        out.write(np.array(tokens, "<u4").tobytes())
        out.write(logits.astype("<f4").tobytes())


if __name__ == "__main__":
    main()
