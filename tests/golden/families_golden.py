"""Makes the expected logits of tests/golden/families_test.cpp.

Run in a throw-away environment (a few GB; a minute):

    python3 -m venv venv
    venv/bin/pip install numpy==2.4.6 torch==2.15.0 transformers==5.23.0 gguf==0.19.0
    cmake --build build/release --target write_families
    venv/bin/python tests/golden/families_golden.py build/release/tests/write_families

The oracle is the model class of `transformers` for each architecture, in float32 on the CPU, on the
random weights of the tiny models of tests/golden/families.hpp. Tensors are given the names and the
order of Hugging Face here; nothing of Lamella is used but its writer of test files. The second
opinion is llama.cpp on the same file: it tells whether the file says what files of that architecture
say. It is only compared with the oracle, and left out where llama_cpp is not installed (0.3.36).

Written to tests/data/golden/: family_NAME.txt, a comment, then "HASH POSITIONS VOCABULARY" (FNV-1a
of the file's bytes), then per position its number and all its logits.
"""

import pathlib
import subprocess
import sys
import tempfile

import numpy as np
import torch
import transformers
from gguf import GGUFReader

HERE = pathlib.Path(__file__).resolve().parent
OUT = HERE.parent / "data/golden"
MASK = (1 << 64) - 1
TOKENS = 300
POSITIONS = [0, 17, 255, 257, 299]  # 256 is the chunk of attention


class SplitMix:
    def __init__(self, seed):
        self.state = seed

    def below(self, bound):
        self.state = (self.state + 0x9E3779B97F4A7C15) & MASK
        z = self.state
        z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & MASK
        z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & MASK
        return (z ^ (z >> 31)) % bound


class File:
    """A GGUF file: keys of its architecture, tensors in float32, outermost dimension first."""

    def __init__(self, path):
        reader = GGUFReader(path)
        self.architecture = reader.fields["general.architecture"].contents()
        self.fields = reader.fields
        self.tensors = {t.name: np.array(t.data, dtype=np.float32) for t in reader.tensors}

    def key(self, name, default=None):
        field = self.fields.get(f"{self.architecture}.{name}")
        return default if field is None else field.contents()


def halves(weight, heads):
    """Rows of Q and K, or their biases, as Hugging Face has them: the pairs that rotate together
    lie half a head apart there, and side by side in GGUF files of LLaMA's kind."""
    rest = weight.shape[1:]
    dim = weight.shape[0] // heads
    return weight.reshape(heads, dim // 2, 2, *rest).swapaxes(1, 2).reshape(weight.shape)


PARTS = {
    "attn_norm": "input_layernorm", "ffn_norm": "post_attention_layernorm",
    "attn_q": "self_attn.q_proj", "attn_k": "self_attn.k_proj", "attn_v": "self_attn.v_proj",
    "attn_output": "self_attn.o_proj", "attn_q_norm": "self_attn.q_norm",
    "attn_k_norm": "self_attn.k_norm", "ffn_gate": "mlp.gate_proj", "ffn_up": "mlp.up_proj",
    "ffn_down": "mlp.down_proj",
}
PARTS_OF = {  # where an architecture has other names
    "phi3": {"attn_qkv": "self_attn.qkv_proj", "ffn_up": "mlp.gate_up_proj"},
    "olmo2": {"post_attention_norm": "post_attention_layernorm",
              "post_ffw_norm": "post_feedforward_layernorm"},
}


def common(file):
    """Settings that all configurations have."""
    heads = file.key("attention.head_count")
    return dict(
        vocab_size=file.tensors["token_embd.weight"].shape[0],
        hidden_size=file.key("embedding_length"),
        intermediate_size=file.key("feed_forward_length"),
        num_hidden_layers=file.key("block_count"), num_attention_heads=heads,
        num_key_value_heads=file.key("attention.head_count_kv"),
        max_position_embeddings=file.key("context_length"), hidden_act="silu",
        rms_norm_eps=file.key("attention.layer_norm_rms_epsilon"),
        rope_parameters=rope_parameters(file),
        tie_word_embeddings="output.weight" not in file.tensors, pad_token_id=None,
        attn_implementation="eager")


def rope_parameters(file):
    """As Hugging Face tells them; `rope_theta` in a file is rope.freq_base."""
    made = {"rope_type": "default", "rope_theta": file.key("rope.freq_base")}
    original = file.key("rope.scaling.original_context_length")
    if file.key("rope.scaling.type") == "yarn":
        made |= {"rope_type": "yarn", "factor": file.key("rope.scaling.factor"),
                 "original_max_position_embeddings": original}
    if "rope_factors_long.weight" in file.tensors:
        # The attention factor follows from both contexts; the file must have the same.
        made |= {"rope_type": "longrope", "original_max_position_embeddings": original,
                 "short_factor": file.tensors["rope_factors_short.weight"].tolist(),
                 "long_factor": file.tensors["rope_factors_long.weight"].tolist(),
                 "factor": file.key("context_length") / original}
    heads, hidden = file.key("attention.head_count"), file.key("embedding_length")
    dim = file.key("attention.key_length", hidden // heads)
    if file.key("rope.dimension_count") != dim:
        made["partial_rotary_factor"] = file.key("rope.dimension_count") / dim
    return made


def make_llama(file):
    biased = "blk.0.attn_q.bias" in file.tensors
    return transformers.LlamaForCausalLM(transformers.LlamaConfig(
        **common(file), attention_bias=biased, mlp_bias=biased))


def make_qwen2(file):
    return transformers.Qwen2ForCausalLM(transformers.Qwen2Config(
        **common(file), use_sliding_window=False))


def make_qwen3(file):
    return transformers.Qwen3ForCausalLM(transformers.Qwen3Config(
        **common(file), head_dim=file.key("attention.key_length"), attention_bias=False,
        use_sliding_window=False))


def make_smollm3(file):
    return transformers.SmolLM3ForCausalLM(transformers.SmolLM3Config(
        **common(file), no_rope_layer_interval=4, use_sliding_window=False))


def make_granite(file):
    return transformers.GraniteForCausalLM(transformers.GraniteConfig(
        **common(file), embedding_multiplier=file.key("embedding_scale"),
        residual_multiplier=file.key("residual_scale"),
        attention_multiplier=file.key("attention.scale"), logits_scaling=file.key("logit_scale")))


def make_olmo2(file):
    return transformers.Olmo2ForCausalLM(transformers.Olmo2Config(**common(file)))


def make_phi3(file):
    settings = common(file)
    if "rope_factors_long.weight" in file.tensors:
        settings["original_max_position_embeddings"] = file.key(
            "rope.scaling.original_context_length")
    return transformers.Phi3ForCausalLM(transformers.Phi3Config(**settings, sliding_window=None))


MAKERS = {"llama": make_llama, "qwen2": make_qwen2, "qwen3": make_qwen3, "smollm3": make_smollm3,
          "granite": make_granite, "olmo2": make_olmo2, "phi3": make_phi3}
SIDE_BY_SIDE = {"llama", "smollm3", "granite"}  # how the files pair the elements that rotate together


def load(file):
    model = MAKERS[file.architecture](file).to(torch.float32).eval()
    state = {"model.embed_tokens.weight": file.tensors["token_embd.weight"],
             "model.norm.weight": file.tensors["output_norm.weight"],
             "lm_head.weight": file.tensors.get("output.weight",
                                                file.tensors["token_embd.weight"])}
    heads = {"attn_q": file.key("attention.head_count"),
             "attn_k": file.key("attention.head_count_kv")}
    for name, values in file.tensors.items():
        if not name.startswith("blk."):
            continue
        _, layer, part, kind = name.split(".")
        if file.architecture in SIDE_BY_SIDE and part in heads:
            values = halves(values, heads[part])
        there = PARTS_OF.get(file.architecture, {}).get(part) or PARTS[part]
        state[f"model.layers.{layer}.{there}.{kind}"] = values
    state = {name: torch.from_numpy(np.ascontiguousarray(w)) for name, w in state.items()}
    found = model.load_state_dict(state, strict=True)
    assert not found.missing_keys and not found.unexpected_keys
    return model


def fnv(data):
    state = 0xCBF29CE484222325
    for byte in data:
        state = ((state ^ byte) * 0x100000001B3) & MASK
    return state


def second_opinion(path, tokens, logits):
    """max|a-b|/max|b| of llama.cpp's logits and the oracle's, in words."""
    try:
        import llama_cpp
    except ImportError:
        return "no second opinion"
    model = llama_cpp.Llama(str(path), n_ctx=512, n_batch=512, n_ubatch=512, logits_all=True,
                            type_k=0, type_v=0, flash_attn=False, verbose=False)
    model.eval(tokens)
    return f"llama.cpp is {abs(model.scores[:len(tokens)] - logits).max() / abs(logits).max():.1e} away"


def main():
    folder = pathlib.Path(tempfile.mkdtemp())
    subprocess.run([sys.argv[1], folder], check=True)
    for path in sorted(folder.glob("*.gguf")):
        file = File(path)
        model = load(file)
        vocabulary = file.tensors["token_embd.weight"].shape[0]
        random = SplitMix(7)
        tokens = torch.tensor([[random.below(vocabulary) for _ in range(TOKENS)]])
        with torch.no_grad():
            logits = model(tokens).logits[0].float().numpy()
        with (OUT / f"family_{path.stem}.txt").open("w") as out:
            out.write(f"# {type(model).__name__}; transformers {transformers.__version__}\n")
            out.write(f"{fnv(path.read_bytes()):016x} {len(POSITIONS)} {vocabulary}\n")
            for p in POSITIONS:
                out.write(f"{p}\n" + " ".join(f"{x:.7g}" for x in logits[p]) + "\n")
        print(f"{path.stem}: {type(model).__name__}, largest logit {abs(logits).max():.3f}, "
              + second_opinion(path, tokens[0].tolist(), logits))


if __name__ == "__main__":
    main()
