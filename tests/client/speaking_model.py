"""Tiny models that speak the form of tool calls of a family; nobody trained them.

What follows a token is written into the weights: the embeddings are a base, and the output layer has what each
token is followed by. Attention heads look for one kind of token each, wherever it is in the context: results of
tools, calls that have begun, and the word "both". So such a model calls a tool as its template says, twice
where it was asked for both, and puts results into words. What it may write within a call is the grammar's affair.

usage: speaking_model.py FAMILY FILE    (a template of forms/, and the GGUF file to write)
"""

import array
import pathlib
import struct
import sys

_hidden, _heads, _head_dim, _feed_forward, _context = 416, 4, 16, 32, 8192

# Of every family: words of the answers, and what frameworks ask for.
_words = ["both", "Oslo", "Hm", "It", " is", " cold", "."]

# Tokens of their own beside these and the bytes. `start`: what a prompt ends with; `call`: what an answer with calls
# begins with; `begun`: what each call has; `result`: what results of tools have; `told`: what a prompt with tools has,
# where only then there are calls; `end`: of an answer. `follows`: what comes behind a token, the likeliest first.
# `ends_calls` and `goes_on`: what may stand behind a call.
_think = {"<think>": ["Hm"], "Hm": ["</think>"]}
_tags = {"start": ["assistant\n"], "call": "<tool_call>", "result": "<tool_response>", "end": "<|im_end|>",
         "more": ["<|im_start|>", "</tool_call>"], "ends_calls": "<|im_end|>", "goes_on": "\n",
         "follows": {"\n": ["<tool_call>"]}}
_families = {
    "hermes": _tags,
    "qwen3": _tags | {"more": _tags["more"] + ["</think>"], "reasons": "<think>",
                      "follows": _tags["follows"] | _think},
    "llama3": {"start": ["\n\n"], "call": "{", "begun": "<|python_tag|>", "result": "ipython", "end": "<|eot_id|>",
               "more": ["<|begin_of_text|>", "<|start_header_id|>", "<|end_header_id|>"]},
    "mistral": {"start": ["[/INST]", "[/TOOL_RESULTS]"], "call": "[TOOL_CALLS]", "result": "[TOOL_RESULTS]",
                "begun": "arguments", "end": "</s>",
                "more": ["<s>", "[INST]", "[AVAILABLE_TOOLS]", "[/AVAILABLE_TOOLS]"],
                "ends_calls": "]", "goes_on": ","},
    "devstral": {"start": ["[/INST]", "[/TOOL_RESULTS]"], "call": "[TOOL_CALLS]", "result": "[TOOL_RESULTS]",
                 "end": "</s>", "more": ["<s>", "[INST]", "[ARGS]", "[SYSTEM_PROMPT]", "[/SYSTEM_PROMPT]",
                                         "[AVAILABLE_TOOLS]", "[/AVAILABLE_TOOLS]"],
                 "ends_calls": "</s>", "goes_on": "[TOOL_CALLS]", "calls_end_with": "}"},
    "qwen3_coder": _tags | {"more": _tags["more"] + [">\n", "\n</parameter>"],
                            "follows": _tags["follows"] | {">\n": ["Oslo"], "Oslo": ["\n</parameter>", '"']},
                            "behind_numbers": "\n</parameter>"},
    "glm": {"start": ["<|assistant|>"], "call": "<tool_call>", "result": "<|observation|>", "end": "<|user|>",
            "more": ["[gMASK]", "<sop>", "<|system|>", "</tool_call>", "<arg_key>", "</arg_key>", "<arg_value>",
                     "</arg_value>", "</think>", "<tool_response>", "</tool_response>", "Bergen"],
            "reasons": "<think>", "ends_calls": "<|user|>", "goes_on": "\n",
            "follows": _think | {"\n": ["</tool_call>", "<tool_call>"], "<arg_value>": ["Bergen"],
                                 "Bergen": ["</arg_value>"]},
            "behind_numbers": "</arg_value>"},
    "deepseek": {"start": ["</think>", "<｜tool▁output▁end｜>"], "call": "<｜tool▁calls▁begin｜>",
                 "begun": "<｜tool▁call▁begin｜>", "result": "<｜tool▁output▁begin｜>", "end": "<｜end▁of▁sentence｜>",
                 "more": ["<｜begin▁of▁sentence｜>", "<｜User｜>", "<｜Assistant｜>", "<｜tool▁sep｜>",
                          "<｜tool▁call▁end｜>", "<｜tool▁calls▁end｜>"],
                 "ends_calls": "<｜tool▁calls▁end｜>", "goes_on": "<｜tool▁call▁begin｜>",
                 "calls_end_with": "<｜tool▁call▁end｜>",
                 "follows": {"<｜tool▁calls▁begin｜>": ["It", "<｜tool▁call▁begin｜>"]}},
    "granite": {"start": ["<|end_of_role|>"], "call": "<|tool_call|>", "begun": "arguments", "result": "tool_response",
                "end": "<|end_of_text|>", "more": ["<|start_of_role|>"], "ends_calls": "]", "goes_on": ","},
    "gpt_oss": {"start": ["assistant"], "call": "<|channel|>", "result": "to=assistant", "end": "<|return|>",
                "more": ["<|call|>", "<|start|>", "<|end|>", "<|message|>", "<|constrain|>", "commentary", "final", "namespace functions"],
                "told": "namespace functions", "follows": {"<|channel|>": ["commentary", "final"], "commentary": [" "], "final": ["<|message|>"],
                            "<|message|>": ["It"]}, "if_no_result": ["commentary"], "calls_end_by": "<|call|>"},
    "kimi": {"start": ["<|im_middle|>"], "call": "<|tool_calls_section_begin|>", "begun": "<|tool_call_begin|>",
             "result": "## Return of ", "end": "<|im_end|>",
             "more": ["<|im_system|>", "<|im_user|>", "<|im_assistant|>", "<|tool_calls_section_end|>",
                      "<|tool_call_argument_begin|>", "<|tool_call_end|>"],
             "ends_calls": "<|tool_calls_section_end|>", "goes_on": "<|tool_call_begin|>",
             "calls_end_with": "<|tool_call_end|>",
             "follows": {"<|tool_calls_section_begin|>": ["It", "<|tool_call_begin|>"]}},
}
names = list(_families)
calls_once = ("llama3", "gpt_oss")  # an answer has one call
_here = pathlib.Path(__file__).parent


def _byte_character(byte):
    """What stands for a byte in vocabularies of bytes."""
    plain = [b for b in range(256) if 0x21 <= b <= 0x7E or 0xA1 <= b <= 0xAC or b >= 0xAE]
    return chr(byte) if byte in plain else chr(0x100 + sum(b not in plain for b in range(byte)))


def _is_mark(text):
    """What a client's text cannot have: a control token."""
    return text[0] in "<[" and text[-1] in ">]" and text not in ("[", "]")


class _Vocabulary:
    """What begins prompts, the family's tokens, the words, the bytes."""

    def __init__(self, family):
        own = [family["end"], family["call"], family["result"]] + family["start"] + family["more"]
        own += [x for x in (family.get("begun"), family.get("reasons")) if x]
        own = [x for x in dict.fromkeys(own) if len(x) > 1]
        self.texts = ["<|first|>"] + own + _words[:-1]
        self.types = [3] + [3 if _is_mark(x) else 4 for x in own] + [4] * len(_words[:-1])
        self.ids = {text: i for i, text in enumerate(self.texts)}
        self.ids |= {chr(b): len(self.texts) + b for b in range(128)}
        self.first = next((x for x in own if x in ("<s>", "<|begin_of_text|>", "<｜begin▁of▁sentence｜>")), "<|first|>")
        self.texts += [_byte_character(b) for b in range(256)]
        self.types += [1] * 256
        assert len(self.texts) + 4 <= _hidden

    def __len__(self):
        return len(self.texts)


class _Matrix:
    """Rows of what comes out, by columns of what goes in."""

    def __init__(self, rows, columns):
        self.rows, self.columns = rows, columns
        self.values = array.array("f", bytes(4 * rows * columns))

    def add(self, row, column, value):
        self.values[row * self.columns + column] += value


_results, _calls, _both, _told = range(4)  # heads, and the hidden elements behind that of all tokens


def _layer(family, words):
    """Weights of one layer: what the heads look for, and nothing else."""
    scale = (_hidden / 2) ** -0.5  # each normalised embedding has two elements of its inverse
    wide = _heads * _head_dim
    q, k, v = (_Matrix(wide, _hidden) for _ in range(3))
    out = _Matrix(_hidden, wide)
    constant = len(words)
    begun = words.ids[family.get("begun", family["call"])]
    first = words.ids[words.first]
    looks_for = {_results: ([words.ids[family["result"]]],) * 2, _calls: ([first, begun], [begun]),
                 _both: ([words.ids["both"]],) * 2}
    if "told" in family:
        looks_for[_told] = ([words.ids[family["told"]]],) * 2
    for head, (found, counted) in looks_for.items():
        # The first elements of a head are rotated by the position; the third one is not.
        at = head * _head_dim
        q.add(at + 2, constant, 12 * scale)
        for token in found:
            k.add(at + 2, token, 12 * scale)
        for token in counted:
            v.add(at, token, scale)
        out.add(constant + 1 + head, at, 1)
    return {"attn_q": q, "attn_k": k, "attn_v": v, "attn_output": out,
            "ffn_gate": _Matrix(_feed_forward, _hidden), "ffn_up": _Matrix(_feed_forward, _hidden),
            "ffn_down": _Matrix(_hidden, _feed_forward)}


def _output(family, words):
    """What follows each token. One call is half of what that head sees, two are two thirds."""
    out = _Matrix(len(words), _hidden)
    ids, constant = words.ids, len(words)
    call, end = family["call"], family["end"]

    def follow(token, texts):
        for i, text in enumerate(texts):
            out.add(ids[text], ids[token], 200 - 20 * i)

    def usual(text, value):
        out.add(ids[text], constant, value)

    for i, text in enumerate(["}", '"', "]", "/", "<", ",", "1", "0", "t", "e"]):
        usual(text, 80 - 4 * i)
    if family.get("goes_on") == ",":
        usual(",", 12)  # as much as "]"
    for text, kind in zip(words.texts, words.types):
        if kind != 1 and text not in _words + [end, family.get("ends_calls"), family.get("goes_on"), "final"]:
            usual(text, 70)  # rather than its bytes
    # The first tool is the weather, the second one the clock; a result is told by neither.
    usual("w", 15 if family.get("begun") == "arguments" else 35)
    out.add(ids["c"], constant + 1 + _calls, 60)
    for text in "wc":
        out.add(ids[text], constant + 1 + _results, -150)
    usual("f", 10)
    usual(end, -100)
    follows = {'"': ["Oslo"], "Oslo": ['"'], "It": [" is"], " is": [" cold"], " cold": ["."], ".": [end],
               call: ["It"]}
    for start in family["start"]:
        follows[start] = [family.get("reasons", call)] + ["It"] * ("reasons" not in family)
    if "reasons" in family:
        follows["</think>"] = [call, "It"]
    behind = [family["behind_numbers"]] if "behind_numbers" in family else []
    follows |= {digit: behind + ["}", "]", ",", ")"] for digit in "0123456789"} | family.get("follows", {})
    for token, texts in follows.items():
        follow(token, texts)
    for text in family.get("if_no_result", [call]):
        out.add(ids[text], constant + 1 + _results, -150)
        if "told" in family:
            usual(text, -300)
            out.add(ids[text], constant + 1 + _told, 300)
    if family.get("calls_end_by"):
        out.add(ids[family["calls_end_by"]], ids["}"], 300)
    if "goes_on" in family:
        closed = family.get("calls_end_with") or ("</tool_call>" if "</tool_call>" in ids else "}")
        ends, goes_on = ids[family["ends_calls"]], ids[family["goes_on"]]
        for token in (ends, goes_on):
            out.add(token, ids[closed], 100)
        out.add(ids[end], ids[closed], 100)
        out.add(ends, constant + 1 + _calls, 120)
        out.add(ends, constant + 1 + _both, -70)
        follow("}", ["}"])
    out.add(ids[end], ids["."], 300)
    return out


def _text(text):
    raw = text.encode()
    return struct.pack("<Q", len(raw)) + raw


def _key(name, kind, value):
    return _text(name) + struct.pack("<I", kind) + value


def _keys(name, words, chat_template, family):
    def number(key, value):
        return _key(key, 4, struct.pack("<I", value))

    def listed(key, kind, values):
        return _key(key, 9, struct.pack("<IQ", kind, len(values)) + b"".join(values))

    keys = [_key("general.architecture", 8, _text("llama")), _key("general.name", 8, _text(name)),
            number("llama.block_count", 1), number("llama.context_length", _context),
            number("llama.embedding_length", _hidden), number("llama.feed_forward_length", _feed_forward),
            number("llama.attention.head_count", _heads), number("llama.attention.head_count_kv", _heads),
            number("llama.attention.key_length", _head_dim), number("llama.attention.value_length", _head_dim),
            number("llama.rope.dimension_count", 2), number("llama.vocab_size", len(words)),
            _key("llama.attention.layer_norm_rms_epsilon", 6, struct.pack("<f", 1e-6)),
            _key("tokenizer.ggml.model", 8, _text("gpt2")), _key("tokenizer.ggml.pre", 8, _text("smollm")),
            listed("tokenizer.ggml.tokens", 8, [_text(x) for x in words.texts]),
            listed("tokenizer.ggml.token_type", 5, [struct.pack("<i", x) for x in words.types]),
            listed("tokenizer.ggml.merges", 8, []),
            number("tokenizer.ggml.bos_token_id", words.ids[words.first]),
            number("tokenizer.ggml.eos_token_id", words.ids[family["end"]]),
            _key("tokenizer.ggml.add_bos_token", 7, b"\1"),
            _key("tokenizer.chat_template", 8, _text(chat_template))]
    if family.get("calls_end_by"):
        keys.append(number("tokenizer.ggml.eot_token_id", words.ids[family["calls_end_by"]]))
    return keys


def write(name, path):
    family = _families[name]
    words = _Vocabulary(family)
    embeddings = _Matrix(len(words), _hidden)
    for token in range(len(words)):
        embeddings.add(token, token, 1)
        embeddings.add(token, len(words), 1)
    ones = array.array("f", [1]) * _hidden
    tensors = {"token_embd": embeddings, "output": _output(family, words), "output_norm": ones, "blk.0.attn_norm": ones,
               "blk.0.ffn_norm": ones} | {"blk.0." + key: x for key, x in _layer(family, words).items()}
    keys = _keys(name, words, (_here / "forms" / (name + ".jinja")).read_text(), family)
    header = b"GGUF" + struct.pack("<IQQ", 3, len(tensors), len(keys)) + b"".join(keys)
    data = b""
    for key, x in tensors.items():
        sizes = [x.columns, x.rows] if isinstance(x, _Matrix) else [len(x)]
        header += _text(key + ".weight") + struct.pack(f"<I{len(sizes)}QIQ", len(sizes), *sizes, 0, len(data))
        data += (x.values if isinstance(x, _Matrix) else x).tobytes()
        data += bytes(-len(data) % 32)
    pathlib.Path(path).write_bytes(header + bytes(-len(header) % 32) + data)


if __name__ == "__main__":
    if len(sys.argv) != 3 or sys.argv[1] not in _families:
        sys.exit(__doc__.rstrip().rsplit("\n", 1)[1] + "\nFAMILY: " + ", ".join(names))
    write(sys.argv[1], sys.argv[2])
