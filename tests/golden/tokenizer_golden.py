"""Makes the expected token ids of tests/golden/tokenizer_test.cpp.

Run in a throw-away environment:

    python3 -m venv venv
    venv/bin/pip install tokenizers==0.23.3 gguf==0.19.0 sentencepiece==0.2.3 protobuf
    tests/golden/fetch_vocabularies
    venv/bin/python tests/golden/tokenizer_golden.py    # or with names of families, for those only

For byte-level vocabularies the oracle is the `tokenizers` library, with the pre-tokenisers that the
families publish in their tokenizer.json, on the vocabulary and merges of a GGUF file. (Qwen2's also
composes characters, which is left out: ours does not, so that text comes back as it was.) For
SentencePiece vocabularies it is `sentencepiece`, on a model made of the pieces, scores and types of
a GGUF file; control tokens are found in the text first, and what is between them is encoded by
itself. Where llama.cpp ships texts with the ids that `transformers` gave for them, the oracle is
first checked against these. Of families whose vocabularies are not at hand the words alone are
compared, in which pairs would be merged.

The texts are made by a generator that tests/golden/tokenizer_texts.hpp has too: text number n comes
from splitmix64 seeded with n. A 32-bit hash of the ids of each text, or of some consecutive ones, is
written: FNV-1a (64 bits, both halves xored) over each id as four little-endian bytes: of each text
first the ids as plain text, then 0xFFFFFFFF, then the ids with control tokens recognised. Of words
it is over the end of each in bytes, and 0xFFFFFFFF after each text.
"""

import os
import pathlib
import re
import sys

from gguf import GGUFReader
import sentencepiece
from sentencepiece import sentencepiece_model_pb2
from tokenizers import AddedToken, Regex, Tokenizer, models, pre_tokenizers
import tokenizers

HERE = pathlib.Path(__file__).resolve().parent
CACHE = pathlib.Path(os.environ.get("XDG_CACHE_HOME") or pathlib.Path.home() / ".cache") / "lamella"
TEXTS = 10240
MASK = (1 << 64) - 1
FNV = 0xCBF29CE484222325

# First and last code point. All were assigned by Unicode 9, so that the libraries agree on them.
RANGES = [
    (0x00, 0x1F), (0x20, 0x7E), (0x7F, 0xFF), (0x100, 0x17F), (0x300, 0x36F), (0x391, 0x3A1),
    (0x3B1, 0x3C9), (0x410, 0x44F), (0x5D0, 0x5EA), (0x620, 0x669), (0x905, 0x939), (0x93E, 0x94D),
    (0xE01, 0xE3A), (0x1100, 0x1112), (0x2000, 0x200F), (0x2010, 0x2027), (0x2070, 0x2071),
    (0x2150, 0x2188), (0x2190, 0x21FF), (0x2460, 0x24FF), (0x2600, 0x26FF), (0x3041, 0x3096),
    (0x30A1, 0x30FA), (0x4E00, 0x9FA5), (0xAC00, 0xD7A3), (0xFF01, 0xFF5E), (0x1D400, 0x1D454),
    (0x1F300, 0x1F5FF), (0x1F600, 0x1F64F), (0x20000, 0x2A6D6),
]


class SplitMix:
    def __init__(self, seed):
        self.state = seed

    def next(self):
        self.state = (self.state + 0x9E3779B97F4A7C15) & MASK
        z = self.state
        z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & MASK
        z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & MASK
        return z ^ (z >> 31)

    def below(self, bound):
        return self.next() % bound


def unescape(line):
    out, i = "", 0
    while i < len(line):
        if line[i] != "\\":
            out += line[i]
            i += 1
        elif line[i + 1] == "u":
            end = line.index("}", i)
            out += chr(int(line[i + 3:end], 16))
            i = end + 1
        else:
            out += {"n": "\n", "r": "\r", "t": "\t", "\\": "\\"}[line[i + 1]]
            i += 2
    return out


def fragments():
    lines = (HERE / "tokenizer_fragments.txt").read_text(encoding="utf-8").split("\n")
    assert lines[-1] == ""
    return [unescape(line) for line in lines[:-1]]


def make_text(number, table):
    random = SplitMix(number)
    text = ""
    for _ in range(1 + random.below(24)):
        choice = random.below(8)
        if choice < 5:
            text += table[random.below(len(table))]
        elif choice == 5:
            first, last = RANGES[random.below(len(RANGES))]
            for _ in range(1 + random.below(6)):
                text += chr(first + random.below(last - first + 1))
        elif choice == 6:
            piece = table[random.below(len(table))]
            text += piece * random.below(40)
        else:
            for _ in range(random.below(12)):
                text += chr(0x20 + random.below(0x5F))
    return text


# Letters of both cases, of the third, and of none; marks; and what rules about them end with.
CASED = ("aAzZsStTrReElLmMdD" "\u01C5\u02B0\u00AA\u4E00\u0301\u093E\u017F" "'  \n\r/.12\u0661")


def make_cased_text(number):
    random = SplitMix(number)
    return "".join(CASED[random.below(len(CASED))] for _ in range(1 + random.below(24)))


LLAMA3 = (r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}|"
          r" ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+")
QWEN2 = LLAMA3.replace("{1,3}", "")
UPPER, LOWER = r"[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]", r"[\p{Ll}\p{Lm}\p{Lo}\p{M}]"
LEAD, SHORT = r"[^\r\n\p{L}\p{N}]?", r"(?i:'s|'t|'re|'ve|'m|'ll|'d)?"
REST = r" ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+"
WORDS = {
    "gpt-4o": f"{LEAD}{UPPER}*{LOWER}+{SHORT}|{LEAD}{UPPER}+{LOWER}*{SHORT}|\\p{{N}}{{1,3}}|{REST}",
    "tekken": f"{LEAD}{UPPER}*{LOWER}+|{LEAD}{UPPER}+{LOWER}*|\\p{{N}}|{REST}",
}
GROUP = 16  # texts per hash, of families that came later


def byte_level(use_regex):
    return pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=use_regex)


FAMILIES = {
    "gpt2": lambda: byte_level(True),
    "smollm": lambda: pre_tokenizers.Sequence(
        [pre_tokenizers.Digits(individual_digits=True), byte_level(True)]),
    "llama3": lambda: pre_tokenizers.Sequence(
        [pre_tokenizers.Split(Regex(LLAMA3), "isolated"), byte_level(False)]),
    "qwen2": lambda: pre_tokenizers.Sequence(
        [pre_tokenizers.Split(Regex(QWEN2), "isolated"), byte_level(False)]),
}


def byte_level_oracle(path, family, control):
    fields = GGUFReader(path).fields
    tokens = fields["tokenizer.ggml.tokens"].contents()
    merges = [tuple(rule.split(" ")) for rule in fields["tokenizer.ggml.merges"].contents()]
    model = models.BPE(vocab={token: i for i, token in enumerate(tokens)}, merges=merges,
                       ignore_merges=family == "llama3")
    made = Tokenizer(model)
    made.pre_tokenizer = FAMILIES[family]()
    if control:
        types = fields["tokenizer.ggml.token_type"].contents()
        made.add_special_tokens([AddedToken(token, special=True, normalized=False)
                                 for token, kind in zip(tokens, types) if kind == 3])
    return lambda text: made.encode(text, add_special_tokens=False).ids


def sentencepiece_oracle(path, control):
    fields = GGUFReader(path).fields
    tokens = fields["tokenizer.ggml.tokens"].contents()
    types = fields["tokenizer.ggml.token_type"].contents()
    model = sentencepiece_model_pb2.ModelProto()
    for token, score, kind in zip(tokens, fields["tokenizer.ggml.scores"].contents(), types):
        model.pieces.add(piece=token, score=score, type=kind)  # the numbers of types are the same
    model.trainer_spec.model_type = model.trainer_spec.BPE
    model.trainer_spec.byte_fallback = True
    model.normalizer_spec.name = "identity"
    model.normalizer_spec.add_dummy_prefix = True
    model.normalizer_spec.remove_extra_whitespaces = False
    processor = sentencepiece.SentencePieceProcessor(model_proto=model.SerializeToString())
    ids = {token: i for i, (token, kind) in enumerate(zip(tokens, types)) if kind in (2, 3)}
    longest_first = sorted(ids, key=len, reverse=True)
    markers = re.compile("(" + "|".join(map(re.escape, longest_first)) + ")")

    def encode(text):
        out = []
        for part in markers.split(text) if control else [text]:
            out += [ids[part]] if control and part in ids else processor.encode(part)
        return out
    return encode


def oracle(path, family, control):
    """Text to ids, by the oracle for a vocabulary file; with `control`, control tokens are
    recognised in the text."""
    if family in FAMILIES:
        return byte_level_oracle(path, family, control)
    return sentencepiece_oracle(path, control)


def write(name, what, texts, hashes):
    out = HERE / name
    with out.open("w") as file:
        file.write(f"# {what}; {texts} texts\n")
        for i in range(0, len(hashes), 16):
            file.write(" ".join(hashes[i:i + 16]) + "\n")
    print(f"{out.name}: {len(hashes)} hashes")


def folded(state):
    return f"{(state ^ state >> 32) & 0xFFFFFFFF:08x}"


def write_words(name, pattern, texts):
    """The words that a regular expression cuts texts into."""
    cut = pre_tokenizers.Split(Regex(pattern), "isolated")
    hashes = []
    for first in range(0, len(texts), GROUP):
        state = FNV
        for text in texts[first:first + GROUP]:
            ends = [len(text[:end].encode()) for _, (_, end) in cut.pre_tokenize_str(text)]
            state = fnv(ends + [0xFFFFFFFF], state)
        hashes.append(folded(state))
    write(f"words_{name}.txt", f"tokenizers {tokenizers.__version__}", len(texts), hashes)


def check_against_transformers(path, family):
    """Texts and ids that come with llama.cpp's vocabulary files; these were made by transformers."""
    texts = path.with_name(path.name + ".inp")
    if not texts.exists():
        return
    expected = path.with_name(path.name + ".out").read_text().splitlines()
    parts = texts.read_bytes().decode().split("\n__ggml_vocab_test__\n")
    made = oracle(path, family, False)
    checked = 0
    for text, line in zip(parts, expected):
        ids = [int(word) for word in line.split()]
        if made(text) != ids:
            sys.exit(f"{path.name}: the oracle differs from transformers on {text!r}")
        checked += 1
    print(f"{path.name}: oracle equals transformers on {checked} texts")


def fnv(ids, state):
    for token in ids:
        for byte in token.to_bytes(4, "little"):
            state = ((state ^ byte) * 0x100000001B3) & MASK
    return state


def main():
    table = fragments()
    texts = [make_text(number, table) for number in range(TEXTS)]
    print(f"{len(table)} fragments, {TEXTS} texts, {sum(len(t.encode()) for t in texts)} bytes")
    sources = {
        "gpt2": (1, CACHE / "vocab/ggml-vocab-gpt-2.gguf"),
        "llama3": (1, CACHE / "vocab/ggml-vocab-llama-bpe.gguf"),
        "smollm": (1, CACHE / "models/SmolLM2-135M-Instruct.Q4_1.gguf"),
        "qwen2": (GROUP, CACHE / "vocab/ggml-vocab-qwen2.gguf"),
        "llama2": (GROUP, CACHE / "vocab/ggml-vocab-llama-spm.gguf"),
        "baichuan": (GROUP, CACHE / "vocab/ggml-vocab-baichuan.gguf"),
    }
    wanted = sys.argv[1:] or [*sources, *WORDS]
    for name, family in [("starcoder", "smollm"), ("refact", "smollm")]:
        check_against_transformers(CACHE / f"vocab/ggml-vocab-{name}.gguf", family)
    for name, pattern in WORDS.items():
        if name in wanted:
            write_words(name, pattern, texts + [make_cased_text(n) for n in range(TEXTS)])
    for family, (group, path) in sources.items():
        if family not in wanted:
            continue
        check_against_transformers(path, family)
        plain, control = oracle(path, family, False), oracle(path, family, True)
        hashes = []
        for first in range(0, TEXTS, group):
            state = FNV
            for text in texts[first:first + group]:
                state = fnv(plain(text), state)
                state = fnv([0xFFFFFFFF], state)
                state = fnv(control(text), state)
            hashes.append(folded(state))
        library = tokenizers if family in FAMILIES else sentencepiece
        write(f"tokenizer_{family}.txt",
              f"{path.name}; {library.__name__} {library.__version__}", TEXTS, hashes)


if __name__ == "__main__":
    main()
