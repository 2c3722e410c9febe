"""Compares directories of Hugging Face, as their own library writes them, with what we make of them.

Run by hand, in a throw-away environment (a few GB; minutes); nothing of it is committed:

    python3 -m venv venv
    venv/bin/pip install numpy==2.4.6 torch==2.15.0 transformers==5.24.0 gguf==0.19.0
    cmake --build build/release --target directory_talk
    venv/bin/python tests/golden/directories_oracle.py build/release/tests/directory_talk

First: a tiny random model of each class, written by `save_pretrained` in several files; the oracle's
logits are those of that class in float32. Then: tokenisers that `transformers` makes of the
vocabularies of tests/golden/fetch_vocabularies, on pieces of this project's texts and on random
characters; the oracle's ids are those of `tokenizers`. One difference is meant and left out: where a
tokeniser puts a space before the first text only ("first"), the oracle puts none before text that
begins with a space, and we do, as SentencePiece does: so the text comes back as it was.
"""

import json
import os
import pathlib
import random
import subprocess
import sys
import tempfile

import numpy as np
import tokenizers
import torch
import transformers as hub

HERE = pathlib.Path(__file__).resolve().parent
CACHE = pathlib.Path(os.environ.get("XDG_CACHE_HOME") or pathlib.Path.home() / ".cache") / "lamella"
SHAPE = dict(vocab_size=278, hidden_size=96, intermediate_size=160, num_hidden_layers=5,
             num_attention_heads=6, num_key_value_heads=3, max_position_embeddings=512,
             pad_token_id=None, bos_token_id=1, eos_token_id=2, attn_implementation="eager")
ALPHABET = ("abcXYZ 0123456789 \n\t\r'\u2019sSdD.,!?-_/\\éüßñçĀŐ你好世界こんにちは안녕하세요مرحبا"
            "שלוםहिन्दी😀🎉\u00a0\u2003\u200d\ufe0f½²Ⅷ①ſǅ◌́")


def rope(**more):
    return {"rope_parameters": {"rope_theta": 10000.0, "rope_type": "default"} | more}


def classes():
    """Name, class and settings of each model."""
    llama3 = rope(rope_type="llama3", factor=8.0, low_freq_factor=1.0, high_freq_factor=4.0,
                  original_max_position_embeddings=128, rope_theta=500000.0)
    yarn = rope(rope_type="yarn", factor=4.0, original_max_position_embeddings=128)
    long = rope(rope_type="longrope", short_factor=[1 + 0.02 * i for i in range(6)],
                long_factor=[1 + 0.9 * i for i in range(6)], partial_rotary_factor=0.75,
                original_max_position_embeddings=128)
    granite = dict(embedding_multiplier=3.0, residual_multiplier=0.7, attention_multiplier=0.3,
                   logits_scaling=2.5)
    return [
        ("llama", "Llama", dict(attention_bias=True, mlp_bias=True, head_dim=32, **rope())),
        ("llama3", "Llama", dict(tie_word_embeddings=True, **llama3)),
        ("linear", "Llama", rope(rope_type="linear", factor=4.0)),
        ("mistral", "Mistral", dict(sliding_window=None, head_dim=32, **rope())),
        ("qwen2", "Qwen2", rope(rope_theta=1e6)),
        ("yarn", "Qwen2", yarn),
        ("qwen3", "Qwen3", dict(head_dim=32, tie_word_embeddings=True, **rope(rope_theta=1e6))),
        ("smollm3", "SmolLM3", rope(rope_theta=2e6)),
        ("granite", "Granite", granite | rope()),
        ("olmo2", "Olmo2", rope(rope_theta=5e5)),
        ("phi3", "Phi3", rope()),
        ("longrope", "Phi3", dict(original_max_position_embeddings=128, **long)),
    ]


def tiny_tokenizer():
    """A tokenizer.json of 278 tokens of no meaning."""
    letters = sorted(tokenizers.pre_tokenizers.ByteLevel.alphabet())
    pairs = [a + b for a in letters[:6] for b in letters[:4]][:278 - len(letters)]
    vocabulary = {token: i for i, token in enumerate(letters + pairs)}
    made = tokenizers.Tokenizer(tokenizers.models.BPE(vocabulary, [tuple(p) for p in pairs]))
    made.pre_tokenizer = tokenizers.pre_tokenizers.ByteLevel(add_prefix_space=False)
    return made


def randomise(model):
    torch.manual_seed(3)
    with torch.no_grad():
        for name, x in model.named_parameters():
            x.copy_(torch.randn_like(x) * (x.shape[-1] ** -0.5 if x.ndim > 1 else 0.1))
            if "norm" in name:
                x.add_(1)
            if "embed_tokens" in name:
                x.mul_(3)


def compare_logits(talk, folder):
    tokens = np.random.default_rng(1).integers(0, SHAPE["vocab_size"], 300).tolist()
    for name, kind, settings in classes():
        config = getattr(hub, kind + "Config")(**SHAPE, **settings)
        model = getattr(hub, kind + "ForCausalLM")(config).float().eval()
        randomise(model)
        with torch.no_grad():
            expected = model(torch.tensor([tokens])).logits[0].float().numpy()
        model.save_pretrained(folder / name, max_shard_size="300KB")
        tiny_tokenizer().save(str(folder / name / "tokenizer.json"))
        found = subprocess.run([talk, "logits", folder / name], input=" ".join(map(str, tokens)).encode(),
                               stdout=subprocess.PIPE, check=True).stdout
        found = np.frombuffer(found, dtype="<f4").reshape(expected.shape)
        apart = abs(found - expected).max() / abs(expected).max()
        print(f"{kind} {name}: max|a-b|/max|b| {apart:.1e}")
        assert apart < 1e-4


def texts():
    chance = random.Random(5)
    prose = "".join(p.read_text() for p in [HERE / "model_text.txt", HERE.parent.parent / "README.md",
                                            *sorted((HERE.parent.parent / "model").rglob("*.cpp"))])
    for _ in range(3000):
        at = chance.randrange(len(prose) - 400)
        yield prose[at:at + chance.randrange(1, 300)]
    for _ in range(3000):
        yield "".join(chance.choice(ALPHABET) for _ in range(chance.randrange(1, 80)))


def compare_tokens(talk, folder):
    all_texts = list(texts())
    for name in ["gpt-2", "llama-bpe", "qwen2", "starcoder", "llama-spm", "phi-3"]:
        file = f"ggml-vocab-{name}.gguf"
        if not (CACHE / "vocab" / file).exists():
            print(f"{name}: skipped, run tests/golden/fetch_vocabularies first")
            continue
        there = folder / name
        hub.AutoTokenizer.from_pretrained(CACHE / "vocab", gguf_file=file).save_pretrained(there)
        once = '"first"' in json.dumps(json.loads((there / "tokenizer.json").read_text())["pre_tokenizer"])
        chosen = [t for t in all_texts if not (once and t.startswith(" "))]
        oracle = tokenizers.Tokenizer.from_file(str(there / "tokenizer.json"))
        expected = [e.ids for e in oracle.encode_batch(chosen, add_special_tokens=False)]
        found = subprocess.run([talk, "tokens", there], input="".join(t + "\0" for t in chosen).encode(),
                               stdout=subprocess.PIPE, check=True).stdout.decode()
        found = [list(map(int, line.split())) for line in found.split("\n")[:-1]]
        differ = sum(a != b for a, b in zip(found, expected, strict=True))
        print(f"{name}: {len(chosen)} texts, {sum(map(len, expected))} tokens, {differ} texts differ")
        assert differ == 0


def main():
    folder = pathlib.Path(tempfile.mkdtemp())
    compare_logits(sys.argv[1], folder)
    compare_tokens(sys.argv[1], folder)


if __name__ == "__main__":
    main()
