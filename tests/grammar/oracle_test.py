#!/usr/bin/python3
"""Grammars of JSON Schemas and regular expressions against who knows better: the package jsonschema and
Python's own expressions. The seed is printed; LAMELLA_SEED draws the same again.

usage: oracle_test.py TALK
"""

import datetime
import json
import os
import random
import re
import signal
import sys

try:
    import jsonschema
except ImportError:
    print("skipped: python3-jsonschema is not installed")
    sys.exit(1 if os.environ.get("TEST_PACKAGES") == "installed" else 77)  # as tests/lacks.sh

from oracle import Failures, Talk

seed = int(os.environ.get("LAMELLA_SEED") or random.randrange(2**31))
print(f"seed {seed}")
rng = random.Random(seed)
talk = Talk(sys.argv[1])
ask = talk.ask
fail = Failures()

# --- schemas: what is drawn is valid, and what is valid and laid out as models do is taken ----------

word = {"type": "string", "minLength": 1, "maxLength": 8}
schemas = [
    # (schema, documents that it takes)
    (True, [None, 1.5, {"a": [1, {"b": "x"}]}, "é\n"]),
    ({"type": "object"}, [{}, {"a": 1}]),
    ({"type": "object", "properties": {"name": word, "age": {"type": "integer", "minimum": 0, "maximum": 150},
      "email": {"type": "string", "format": "email"}}, "required": ["name", "age"]},
     [{"name": "Ann", "age": 0}, {"name": "Zoë", "age": 150, "email": "a@b.cd"}]),
    ({"type": "object", "properties": {"a": {"type": "null"}, "b": {"type": "boolean"}, "c": {"type": "number"}},
      "additionalProperties": {"type": "integer"}}, [{}, {"b": True}, {"a": None, "c": 1.25, "d": 7}]),
    ({"type": "object", "additionalProperties": {"type": "array", "items": word}, "minProperties": 1,
      "maxProperties": 3}, [{"x": []}, {"x": ["a"], "y": ["b", "c"]}]),
    ({"type": "array", "items": {"anyOf": [{"type": "integer", "exclusiveMinimum": -5, "exclusiveMaximum": 5},
      {"type": "null"}]}, "minItems": 2, "maxItems": 5}, [[0, None], [-4, 4, None, 1, 2]]),
    ({"type": "array", "prefixItems": [word, {"type": "number", "minimum": 0.5, "maximum": 2}], "minItems": 1,
      "items": {"const": "end"}}, [["a"], ["a", 0.5], ["b", 2, "end", "end"]]),
    ({"enum": ["a", 1, None, {"b": [True, 2], "c": {}}]}, ["a", 1, None, {"b": [True, 2], "c": {}}]),
    ({"type": "string", "pattern": "^[a-z]+(-[a-z]+)*$"}, ["a", "ab-cd-e"]),
    ({"type": "string", "pattern": "x[0-9]"}, ["x1", "aax9b"]),
    ({"$ref": "#/$defs/node", "$defs": {"node": {"type": "object", "properties": {"value": {"type": "integer"},
      "children": {"type": "array", "items": {"$ref": "#/$defs/node"}, "maxItems": 2}},
      "required": ["value", "children"], "additionalProperties": False}}},
     [{"value": 1, "children": []}, {"value": 1, "children": [{"value": 2, "children": []}]}]),
    ({"oneOf": [{"type": "object", "properties": {"kind": {"const": "circle"}, "radius": {"type": "number",
      "exclusiveMinimum": 0}}, "required": ["kind", "radius"]}, {"type": "object", "properties": {"kind":
      {"const": "square"}, "side": {"type": "integer"}}, "required": ["kind", "side"]}]},
     [{"kind": "circle", "radius": 0.1}, {"kind": "square", "side": 3}]),
    ({"allOf": [{"type": "object", "properties": {"a": {"const": 1}}, "required": ["a"]},
      {"type": "object", "properties": {"b": word}, "required": ["b"]}]}, [{"a": 1, "b": "x"}]),
    ({"type": ["string", "integer", "null"], "maxLength": 2}, ["", "ab", 3, None]),
    ({"type": "string", "minLength": 3, "maxLength": 5}, ["abc", "é€😀", "abcde"]),
] + [({"type": "string", "format": f}, []) for f in
     ("date", "time", "date-time", "duration", "email", "hostname", "ipv4", "ipv6", "uuid", "uri")]

layouts = [{"separators": (",", ":")}, {}, {"indent": 2}, {"indent": 4}, {"ensure_ascii": False}]


def is_valid(schema, value):
    checker = jsonschema.FormatChecker()
    if isinstance(schema, dict) and schema.get("format") == "time":  # the checker's is of old drafts
        return datetime.time.fromisoformat(value[:8] + re.sub(r"^\.\d+", "", value[8:])).tzinfo is not None
    return jsonschema.Draft202012Validator(schema, format_checker=checker).is_valid(value)


for schema, documents in schemas:
    texts = [json.dumps(d, **layout) for d in documents for layout in layouts]
    got = ask(schema=schema, take=texts, draw=60, seed=rng.randrange(2**31))
    if "error" in got:
        fail(f"{schema}: {got['error']}")
        continue
    for document in documents:
        if not is_valid(schema, document):
            fail(f"the test is wrong: {document} is not valid for {schema}")
    for text, taken in zip(texts, got["taken"]):
        if not taken:
            fail(f"{schema} does not take {text}")
    for text in got["drawn"]:
        try:
            value = json.loads(text)
        except ValueError as error:
            fail(f"{schema}: {text!r} is no JSON: {error}")
            continue
        if not is_valid(schema, value):
            fail(f"{schema}: {text!r} is not valid")
    if not got["drawn"]:
        fail(f"{schema}: nothing was drawn")

# --- numbers: exactly those within the bounds ------------------------------------------------------

for _ in range(150):
    whole = rng.random() < 0.5
    low, high = sorted(rng.randrange(-400, 400) for _ in range(2))
    if not whole:
        low, high = low / 8, high / 8
    schema = {"type": "integer" if whole else "number"}
    if rng.random() < 0.8:
        schema[rng.choice(["minimum", "exclusiveMinimum"])] = low
    if rng.random() < 0.8:
        schema[rng.choice(["maximum", "exclusiveMaximum"])] = high
    near = [low, high, 0] + [rng.randrange(-500, 500) for _ in range(5)]
    texts = set()
    for n in near:
        for step in (-1, -0.125, 0, 0.125, 1):
            texts.add(json.dumps(int(n + step) if whole else n + step))
    texts -= {"-0.0", "-0"}
    texts = sorted(texts)
    got = ask(schema=schema, take=texts, draw=5, seed=rng.randrange(2**31))
    if "error" in got:
        if any(is_valid(schema, json.loads(t)) for t in texts):
            fail(f"{schema}: {got['error']}")
        continue
    for text, taken in zip(texts, got["taken"]):
        right = is_valid(schema, json.loads(text)) and (not whole or "." not in text)
        if taken != right:
            fail(f"{schema}: {text} taken {taken}")
    for text in got["drawn"]:
        if not is_valid(schema, json.loads(text)):
            fail(f"{schema}: {text} was drawn")

# --- regular expressions: the same texts as Python's -----------------------------------------------


def expression(depth):
    kind = rng.randrange(9 if depth > 0 else 4)
    if kind < 2:
        return rng.choice("abc1 ")
    if kind == 2:
        return rng.choice(["[ab]", "[^a]", "[a-c1]", "\\d", "\\w", "\\s", ".", "[^\\d ]"])
    if kind == 3:
        return rng.choice(["ab", "", "c1"])
    if kind < 6:
        return expression(depth - 1) + expression(depth - 1)
    if kind == 6:
        return "(" + expression(depth - 1) + "|" + expression(depth - 1) + ")"
    return "(?:" + expression(depth - 1) + ")" + rng.choice(
        ["*", "+", "?", "{2}", "{1,3}", "{0,2}", "{2,}", "{5,7}", "*?", "+?"])


class TakesTooLong(Exception):
    """Python goes back over what it has tried: for nested repetitions that may take years."""


def give_up(*_):
    raise TakesTooLong


signal.signal(signal.SIGALRM, give_up)
patience_s = 2


def is_match(compiled, text):
    signal.setitimer(signal.ITIMER_REAL, patience_s)
    try:
        return compiled.fullmatch(text) is not None
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)


def compare(text):
    compiled = re.compile(text, re.ASCII)
    tries = ["".join(rng.choice("abc1 ") for _ in range(rng.randrange(9))) for _ in range(40)]
    got = ask(regex=text, take=tries, draw=10, seed=rng.randrange(2**31))
    if "error" in got:
        fail(f"{text!r}: {got['error']}")
        return
    for one, taken in zip(tries, got["taken"]):
        if taken != is_match(compiled, one):
            fail(f"{text!r}: {one!r} taken {taken}")
    for one in got["drawn"]:
        # Letters and white space beyond ASCII: \w and \s are those of ECMA-262.
        if one.isascii() and not {"\v", "\f", "\x1c", "\x1d", "\x1e", "\x1f", "\r"} & set(one) \
                and not is_match(compiled, one):
            fail(f"{text!r}: {one!r} was drawn")


texts = [text for text in (expression(4) for _ in range(400)) if text]
texts += ["(?P<first>a|b)(?P<second>c*)", "a\\_b", "[\\_ab]{2}", "[]a]{,3}b", "[^]1]{,}", "[]-c]c{,1}"]
given_up = 0
for text in texts:
    try:
        compare(text)
    except TakesTooLong:
        given_up += 1
print(f"{given_up} of {len(texts)} expressions took Python too long")
if given_up > len(texts) // 10:
    fail("too few expressions were compared")

# Escapes of each character are Python's, or are refused where they are of letters and digits. Python reads
# U+001C to U+001F as white space without re.ASCII alone: what is taken matches either way.
marks = [chr(c) for c in range(0x21, 0x7F)] + ["\u00e9", "\U0001f600"]
for mark in marks:
    for text in ("\\" + mark, "[\\" + mark + "]"):
        try:
            readings = [re.compile(text, re.ASCII), re.compile(text)]
        except re.error:
            readings = []
        tries = [chr(c) for c in range(1, 0x80)] + [mark]
        got = ask(regex=text, take=tries, draw=0, seed=0)
        if "error" in got:
            if not (mark.isascii() and mark.isalnum()):
                fail(f"{text!r}: {got['error']}")
        elif not readings:
            fail(f"{text!r} is taken, and Python refuses it")
        elif got["taken"] != [all(r.fullmatch(one) for r in readings) for one in tries]:
            fail(f"{text!r} is read otherwise than Python reads it")


talk.end()
print("all ok" if fail.count == 0 else f"{fail.count} failures; LAMELLA_SEED={seed} draws the same again")
sys.exit(1 if fail.count else 0)
