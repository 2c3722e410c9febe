"""Makes the expected logits and tokens of tests/golden/oracle_test.cpp.

Run in a throw-away environment (a few GB; minutes):

    python3 -m venv venv
    venv/bin/pip install numpy==2.4.6 torch==2.15.0 transformers==5.23.0 jinja2==3.1.6
    CMAKE_ARGS=-DGGML_NATIVE=ON venv/bin/pip install --no-binary llama-cpp-python \\
        llama-cpp-python==0.3.2
    venv/bin/python tests/golden/model_golden.py

The oracle is LlamaForCausalLM of `transformers` in float32 on the CPU, on the weights of the default
model's GGUF file, which are dequantised here. The second opinion is llama.cpp on the same file; it
is only compared with the oracle, and left out where llama_cpp is not installed.

Written to tests/data/golden/ (formats: read_greedy() and the functions beside it in
tests/golden/oracle_files.hpp, which read them):

    model_greedy.txt          20 prompts, 64 greedy tokens each, the gap between the two best logits
    model_forced.bin          model_text.txt token by token: the 64 best logits of each position
    model_logits.bin          all logits of a few positions of that text
    model_second_opinion.txt  how far llama.cpp, and the oracle in float64, are from the oracle
"""

import hashlib
import os
import pathlib
import struct

import jinja2
import numpy as np
import tokenizers
import torch
import transformers

HERE = pathlib.Path(__file__).resolve().parent
OUT = HERE.parent / "data/golden"
CACHE = pathlib.Path(os.environ.get("XDG_CACHE_HOME") or pathlib.Path.home() / ".cache") / "lamella"
MODEL = CACHE / "models/SmolLM2-135M-Instruct.Q4_1.gguf"
CONTINUATION = 64   # greedy tokens per prompt
KEPT = 64           # logits kept per position of the text
WHOLE = [0, 100, 255, 257, -1]  # positions with all logits; 256 is the chunk of attention

# Name, whether the text is a user's message to be put into the chat template, text.
PROMPTS = [
    ("chat greeting", True, "Hello! What can you help me with?"),
    ("chat fact", True, "What is the capital of France, and which river flows through it?"),
    ("chat list", True, "List five tools a carpenter uses every day."),
    ("chat code", True, "Write a Python function that reverses a linked list."),
    ("chat arithmetic", True, "I have 17 apples, give away 5 and buy 8 more. How many are left?"),
    ("chat multiline", True, "Rewrite this politely:\n\nSend me the report.\nToday!\n"),
    ("chat translation", True, "Translate to German: The train to the sea leaves at seven."),
    ("chat long", True, None),  # the first half of model_text.txt and a question
    ("story", False, "The old lighthouse keeper climbed the stairs one last time, and"),
    ("encyclopaedia", False, "Photosynthesis is the process by which"),
    ("python", False, "def fibonacci(n):\n    \"\"\"Return the n-th Fibonacci number.\"\"\"\n"),
    ("c", False, "#include <stdio.h>\n\nint main(int argc, char **argv) {\n    for (int i = 0; i <"),
    ("sql", False, "SELECT name, count(*) AS orders\nFROM customers c\nJOIN"),
    ("json", False, '{"name": "Ada", "born": 1815, "languages": ["en", "fr"], "address": {"'),
    ("html", False, "<!doctype html>\n<html>\n<head>\n  <title>Tides</title>\n"),
    ("digits", False, "3.14159265358979 2.71828182845904 1.41421356237309 1 2 3 5 8 13 21 34"),
    ("chinese and japanese", False, "今天天气很好,我们去公园。東京は日本の首都です。"),
    ("german and greek", False, "Übermäßig große Größen: αβγδε, naïve façade, Ærøskøbing"),
    ("white space", False, "a\n\n\n\tb    c\n        d\n\n1.  first\n2.  "),
    ("one token", False, "The"),
]


# --- the file -------------------------------------------------------------------------------------

class Gguf:
    """Metadata and tensors of a GGUF v3 file of the types that the default model uses."""

    def __init__(self, path):
        self.data = np.memmap(path, mode="r")
        self.at = 0
        magic, version, tensor_count, key_count = self.take("IIQQ")
        assert magic == 0x46554747 and version == 3
        self.keys = {}
        for _ in range(key_count):
            key = self.string()
            self.keys[key] = self.value(self.take("I")[0])
        entries = []
        for _ in range(tensor_count):
            name = self.string()
            shape = [self.take("Q")[0] for _ in range(self.take("I")[0])]
            kind, offset = self.take("IQ")
            entries.append((name, shape, kind, offset))
        alignment = self.keys.get("general.alignment", 32)
        base = (self.at + alignment - 1) // alignment * alignment
        self.tensors = {name: self.dequantise(shape, kind, base + offset)
                        for name, shape, kind, offset in entries}

    def take(self, layout):
        values = struct.unpack_from("<" + layout, self.data, self.at)
        self.at += struct.calcsize("<" + layout)
        return values

    def string(self):
        length = self.take("Q")[0]
        self.at += length
        return bytes(self.data[self.at - length:self.at]).decode()

    def value(self, kind):
        if kind == 8:
            return self.string()
        if kind == 9:
            kind, count = self.take("IQ")
            return [self.value(kind) for _ in range(count)]
        return self.take({0: "B", 1: "b", 2: "H", 3: "h", 4: "I", 5: "i", 6: "f", 7: "?", 10: "Q",
                          11: "q", 12: "d"}[kind])[0]

    def dequantise(self, shape, kind, offset):
        """The tensor in float32, outermost dimension first. Products are exact in float32 where the
        file's scale is a half; q4_1 rounds once, in the sum."""
        count = int(np.prod(shape))
        if kind == 0:
            flat = self.data[offset:offset + 4 * count].view("<f4").astype(np.float32)
        else:
            width = {8: 34, 3: 20}[kind]
            blocks = self.data[offset:offset + count // 32 * width].reshape(-1, width)
            scale = np.ascontiguousarray(blocks[:, 0:2]).view("<f2").astype(np.float32)
            if kind == 8:
                quants = np.ascontiguousarray(blocks[:, 2:]).view(np.int8).astype(np.float32)
                flat = scale * quants
            else:
                minimum = np.ascontiguousarray(blocks[:, 2:4]).view("<f2").astype(np.float32)
                nibbles = blocks[:, 4:]
                quants = np.concatenate([nibbles & 15, nibbles >> 4], axis=1).astype(np.float32)
                flat = scale * quants + minimum
        return flat.reshape(shape[::-1])


# --- model and tokeniser --------------------------------------------------------------------------

def make_model(file):
    """LlamaForCausalLM with the file's shape and weights."""
    key = lambda name: file.keys["llama." + name]
    heads, kv_heads = key("attention.head_count"), key("attention.head_count_kv")
    config = transformers.LlamaConfig(
        vocab_size=file.tensors["token_embd.weight"].shape[0],
        hidden_size=key("embedding_length"), intermediate_size=key("feed_forward_length"),
        num_hidden_layers=key("block_count"), num_attention_heads=heads,
        num_key_value_heads=kv_heads, head_dim=key("rope.dimension_count"),
        max_position_embeddings=key("context_length"), hidden_act="silu",
        rms_norm_eps=key("attention.layer_norm_rms_epsilon"),
        rope_parameters={"rope_type": "default", "rope_theta": key("rope.freq_base")},
        tie_word_embeddings="output.weight" not in file.tensors, attention_bias=False,
        mlp_bias=False, attn_implementation="eager")

    def halves(weight, count):
        """Rows of Q and K as Hugging Face has them: the pairs that rotate together lie half a head
        apart there, and side by side in a LLaMA GGUF."""
        rows, inputs = weight.shape
        pairs = weight.reshape(count, rows // count // 2, 2, inputs)
        return pairs.swapaxes(1, 2).reshape(rows, inputs)

    state = {"model.embed_tokens.weight": file.tensors["token_embd.weight"],
             "model.norm.weight": file.tensors["output_norm.weight"],
             "lm_head.weight": file.tensors.get("output.weight", file.tensors["token_embd.weight"])}
    names = {"attn_norm": "input_layernorm", "ffn_norm": "post_attention_layernorm",
             "attn_q": "self_attn.q_proj", "attn_k": "self_attn.k_proj",
             "attn_v": "self_attn.v_proj", "attn_output": "self_attn.o_proj",
             "ffn_gate": "mlp.gate_proj", "ffn_up": "mlp.up_proj", "ffn_down": "mlp.down_proj"}
    for layer in range(config.num_hidden_layers):
        for ours, theirs in names.items():
            weight = file.tensors[f"blk.{layer}.{ours}.weight"]
            if ours in ("attn_q", "attn_k"):
                weight = halves(weight, heads if ours == "attn_q" else kv_heads)
            state[f"model.layers.{layer}.{theirs}.weight"] = weight
    model = transformers.LlamaForCausalLM(config).to(torch.float32).eval()
    state = {name: torch.from_numpy(np.ascontiguousarray(w)) for name, w in state.items()}
    missing = model.load_state_dict(state, strict=True)
    assert not missing.missing_keys and not missing.unexpected_keys
    return model


def make_tokenizer(file):
    tokens = file.keys["tokenizer.ggml.tokens"]
    merges = [tuple(rule.split(" ")) for rule in file.keys["tokenizer.ggml.merges"]]
    made = tokenizers.Tokenizer(tokenizers.models.BPE(
        vocab={token: i for i, token in enumerate(tokens)}, merges=merges))
    made.pre_tokenizer = tokenizers.pre_tokenizers.Sequence([
        tokenizers.pre_tokenizers.Digits(individual_digits=True),
        tokenizers.pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=True)])
    types = file.keys["tokenizer.ggml.token_type"]
    made.add_special_tokens([tokenizers.AddedToken(token, special=True, normalized=False)
                             for token, kind in zip(tokens, types) if kind == 3])
    return made


def prompt_ids(file, tokenizer, text):
    """Ids of the prompts, by name."""
    template = jinja2.Template(file.keys["tokenizer.chat_template"])
    half = text[:len(text) // 3].rsplit("\n\n", 1)[0]
    result = {}
    for name, chat, content in PROMPTS:
        if content is None:
            content = half + "\n\nWhat did the harbour master keep on the wall of her office?"
        if chat:
            content = template.render(messages=[{"role": "user", "content": content}],
                                      add_generation_prompt=True)
        result[name] = tokenizer.encode(content, add_special_tokens=False).ids
    return result


# --- what the oracle says -------------------------------------------------------------------------

@torch.no_grad()
def logits_of(model, ids):
    """Logits of every position, in one pass without a cache."""
    return model(torch.tensor([ids]), use_cache=False).logits[0].numpy()


@torch.no_grad()
def greedy(model, ids):
    """The continuation and, per token, the gap between the two best logits. The end token does not
    end it."""
    tokens, gaps, cache, row = [], [], None, torch.tensor([ids])
    for _ in range(CONTINUATION):
        out = model(row, past_key_values=cache, use_cache=True)
        cache = out.past_key_values
        best = torch.topk(out.logits[0, -1], 2)
        tokens.append(int(best.indices[0]))
        gaps.append(float(best.values[0] - best.values[1]))
        row = best.indices[:1].reshape(1, 1)
    return tokens, gaps


def log_softmax(logits):
    wide = logits.astype(np.float64)
    wide = wide - wide.max(axis=-1, keepdims=True)
    return wide - np.log(np.exp(wide).sum(axis=-1, keepdims=True))


def write_forced(path, ids, logits, file_bytes):
    """Per position: logsumexp, max|logit|, logit of the next token of the text, log of the
    probability outside the kept ones, ids kept (best first), their logits."""
    logprobs = log_softmax(logits)
    with path.open("wb") as out:
        rows, vocabulary = logits.shape
        out.write(struct.pack("<8sQIII", b"LAMGOLD1", file_bytes, rows, vocabulary, KEPT))
        out.write(np.array(ids, "<u4").tobytes())
        for row in range(rows):
            order = np.lexsort((np.arange(vocabulary), -logits[row]))[:KEPT]
            peak = logits[row].astype(np.float64).max()
            total = peak + np.log(np.exp(logits[row].astype(np.float64) - peak).sum())
            rest = np.delete(logprobs[row], order)
            rest = np.log(np.exp(rest).sum())
            out.write(struct.pack("<ffff", total, np.abs(logits[row]).max(),
                                  logits[row][ids[row + 1]], rest))
            out.write(order.astype("<u2").tobytes())
            out.write(logits[row][order].astype("<f4").tobytes())


def write_logits(path, logits, file_bytes):
    rows = [row % len(logits) for row in WHOLE]
    with path.open("wb") as out:
        out.write(struct.pack("<8sQII", b"LAMGOLD2", file_bytes, len(rows), logits.shape[1]))
        out.write(np.array(rows, "<u4").tobytes())
        out.write(logits[rows].astype("<f4").tobytes())


# --- the second opinion ---------------------------------------------------------------------------

def compare(name, ids, oracle, other):
    """Lines about how far `other` is from `oracle` on the text."""
    a, b = log_softmax(oracle), log_softmax(other)
    terms = np.exp(a) * (a - b)
    kl = terms.sum(axis=1)
    kept = np.argsort(-a, axis=1)[:, :KEPT]
    rest_a = np.maximum(1 - np.take_along_axis(np.exp(a), kept, 1).sum(axis=1), 1e-12)
    rest_b = np.maximum(1 - np.take_along_axis(np.exp(b), kept, 1).sum(axis=1), 1e-12)
    coarse = np.take_along_axis(terms, kept, 1).sum(axis=1) + rest_a * np.log(rest_a / rest_b)
    two = np.sort(a, axis=1)[:, -2:]
    clear = two[:, 1] - two[:, 0] > 0.2
    same = a.argmax(axis=1) == b.argmax(axis=1)
    rows, targets = np.arange(len(a)), ids[1:len(a) + 1]
    perplexity = np.exp(-a[rows, targets].mean()), np.exp(-b[rows, targets].mean())
    error = np.abs(oracle - other).max(axis=1) / np.abs(oracle).max(axis=1)
    return [f"{name}: {len(a)} positions of model_text.txt",
            f"  mean KL {kl.mean():.3g} (largest {kl.max():.3g}); with all but the {KEPT} best tokens "
            f"taken as one {coarse.mean():.3g}; these carry {100 * rest_a.mean():.1f} % of the "
            f"probability",
            f"  perplexity {perplexity[1]:.4f} "
            f"against {perplexity[0]:.4f}",
            f"  same best token {100 * same.mean():.2f} %, where the gap exceeds 0.2 nat "
            f"{100 * same[clear].mean():.2f} % of {clear.sum()}",
            f"  max|a-b|/max|b| per position: mean {error.mean():.3g}, largest {error.max():.3g}"]


def second_opinion(ids, oracle, prompts, answers):
    try:
        import llama_cpp
    except ImportError:
        return ["llama.cpp: not installed, left out"]
    llama = llama_cpp.Llama(str(MODEL), n_ctx=2048, n_threads=2, logits_all=True, verbose=False,
                            n_batch=256)

    def scores(tokens):
        llama.reset()
        llama.eval(tokens)
        return np.array(llama.scores[:len(tokens)])

    lines = compare(f"llama.cpp (llama-cpp-python {llama_cpp.__version__}, f16 cache)", ids, oracle,
                    scores(ids[:-1]))
    steps = same = clear = same_clear = 0
    for name, prompt in prompts.items():
        tokens, gaps = answers[name]
        best = scores(prompt + tokens[:-1])[len(prompt) - 1:].argmax(axis=1)
        steps += len(tokens)
        same += int((best == tokens).sum())
        clear += sum(gap > 0.2 for gap in gaps)
        same_clear += sum(int(b == t) for b, t, gap in zip(best, tokens, gaps) if gap > 0.2)
    lines.append(f"  greedy tokens, the oracle's fed: {same} of {steps} equal; {same_clear} of "
                 f"{clear} where the gap exceeds 0.2")
    return lines


def main():
    torch.manual_seed(0)
    digest = hashlib.sha256(MODEL.read_bytes()).hexdigest()
    file_bytes = MODEL.stat().st_size
    file = Gguf(MODEL)
    model, tokenizer = make_model(file), make_tokenizer(file)
    text = (HERE / "model_text.txt").read_text(encoding="utf-8")
    ids = tokenizer.encode(text, add_special_tokens=False).ids
    prompts = prompt_ids(file, tokenizer, text)
    print(f"text: {len(ids)} tokens; prompts: {[len(p) for p in prompts.values()]}")
    OUT.mkdir(parents=True, exist_ok=True)

    logits = logits_of(model, ids[:-1])
    write_forced(OUT / "model_forced.bin", ids, logits, file_bytes)
    write_logits(OUT / "model_logits.bin", logits, file_bytes)

    answers = {}
    with (OUT / "model_greedy.txt").open("w") as out:
        out.write(f"# {MODEL.name}; sha256 {digest}; transformers {transformers.__version__}, "
                  f"torch {torch.__version__}, float32, greedy\n{file_bytes} {len(prompts)}\n")
        for name, prompt in prompts.items():
            tokens, gaps = answers[name] = greedy(model, prompt)
            out.write(f"prompt {name}\n{len(prompt)} {' '.join(map(str, prompt))}\n")
            out.write(f"{len(tokens)} {' '.join(map(str, tokens))}\n")
            out.write(" ".join(f"{gap:.6g}" for gap in gaps) + "\n")
            print(f"{name}: {tokenizer.decode(tokens)!r} smallest gap {min(gaps):.3g}")

    lines = second_opinion(ids, logits, prompts, answers)
    lines += compare("the oracle in float64", ids, logits, logits_of(model.double(), ids[:-1]))
    (OUT / "model_second_opinion.txt").write_text("\n".join(lines) + "\n")
    print("\n".join(lines))


if __name__ == "__main__":
    main()
