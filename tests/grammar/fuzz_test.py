#!/usr/bin/python3
"""Random schemas against the package jsonschema: whatever text a grammar draws or takes, the schema takes its value.
Schemas are small and of few names and values, so that their parts meet: allOf, oneOf, anyOf, conditions, references,
anchors, resources of their own, unevaluated and additional members and items, patterns of names, counts, bounds.
LAMELLA_SEED draws others.

usage: fuzz_test.py TALK [SCHEMAS]
"""

import collections
import importlib.metadata
import json
import os
import random
import sys
import warnings

try:
    import jsonschema
except ImportError:
    print("skipped: python3-jsonschema is not installed")
    sys.exit(1 if os.environ.get("TEST_PACKAGES") == "installed" else 77)  # as tests/lacks.sh

from oracle import Failures, Talk

seed = int(os.environ.get("LAMELLA_SEED") or 1)
count = int(sys.argv[2]) if len(sys.argv) > 2 else 3000
print(f"seed {seed}, {count} schemas")
rng = random.Random(seed)
talk = Talk(sys.argv[1])
fail = Failures()
warnings.simplefilter("ignore")
# Old versions do not know all that evaluates members and items: additionalProperties behind a $ref, dependentSchemas.
knows_unevaluated = tuple(int(part) for part in importlib.metadata.version("jsonschema").split(".")[:2]) >= (4, 20)

names = ["a", "b", "a%b", "c/d"]
types = ["object", "array", "string", "number", "integer", "boolean", "null"]
numbers = [0, 1, 2, -1, 1.0, 0.5, 1.5, -0.5, 0.1, 3, 2**53, 2**53 + 1, 10.25]
references = ["#/$defs/a", "#/$defs/b", "#/$defs/a%25b", "#/$defs/c~1d", "#", "#/properties/a", "#/allOf/0", "#anchor"]


def chance(p):
    return rng.random() < p


def value(depth=1):
    kind = rng.randrange(9 if depth > 0 else 6)
    if kind < 3:
        return rng.choice(numbers)
    if kind < 5:
        return rng.choice(["", "x", "xy", "é", True, False, None])
    if kind == 5:
        return rng.choice([{}, [], {"a": 1}, {"a": 1.0, "b": "x"}, {"b": "x", "a": 1}])
    if kind == 6:
        return [value(depth - 1) for _ in range(rng.randrange(4))]
    return {name: value(depth - 1) for name in rng.sample(names, rng.randrange(len(names)))}


def of_object(depth, schema):
    if chance(0.7):
        schema["properties"] = {n: schema_of(depth - 1) for n in rng.sample(names, rng.randrange(1, 3))}
    if chance(0.4):
        schema["required"] = rng.sample(names, rng.randrange(3))
    for keyword in ("additionalProperties", "unevaluatedProperties"):
        if chance(0.35):
            schema[keyword] = rng.choice([False, False, True, {}]) if chance(0.6) else schema_of(depth - 1)
    if chance(0.2):
        schema["patternProperties"] = {rng.choice(["^a", "[bd]$"]): schema_of(depth - 1)}
    if chance(0.1):
        schema["propertyNames"] = rng.choice([{"pattern": "^[ab]"}, {"maxLength": 1}, {"enum": ["a", "b"]}])
    for keyword in ("minProperties", "maxProperties"):
        if chance(0.15):
            schema[keyword] = rng.randrange(4)


def of_array(depth, schema):
    if chance(0.7):
        schema["items"] = schema_of(depth - 1)
    if chance(0.3):
        schema["prefixItems"] = [schema_of(depth - 1) for _ in range(rng.randrange(1, 3))]
    if chance(0.25):
        schema["unevaluatedItems"] = rng.choice([False, True, {"type": "integer"}])
    if chance(0.35):
        schema["contains"] = of_document(schema_of(depth - 1))
        for keyword in ("minContains", "maxContains"):
            if chance(0.5):
                schema[keyword] = rng.randrange(4)
    for keyword in ("minItems", "maxItems"):
        if chance(0.3):
            schema[keyword] = rng.randrange(4)


def of_string(_, schema):
    if chance(0.2):
        schema["pattern"] = rng.choice(["^x", "y$", "^[a-c]*$", "x.y", "\"", "^(x|é)+$"])
    elif chance(0.2):
        schema["format"] = "ipv4"
    else:
        for keyword in ("minLength", "maxLength"):
            if chance(0.5):
                schema[keyword] = rng.randrange(3)


def of_number(_, schema):
    for keyword in ("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"):
        if chance(0.3):
            schema[keyword] = rng.choice(numbers)
    if chance(0.1):
        schema["multipleOf"] = rng.choice([1, 1.0, 0.5, 1.5, 0.25, 3])


about = [of_object, of_object, of_object, of_array, of_string, of_number]


def of_document(schema):
    """jsonschema looks up references of alternatives, conditions and the like outside of their resource."""
    if isinstance(schema, dict):
        schema.pop("$id", None)
    return schema


def basic(depth):
    schema = {}
    if chance(0.7):
        schema["type"] = rng.sample(types, 2) if chance(0.2) else rng.choice(types + ["object"] * 4)
    if depth > 0 or chance(0.3):
        kinds = {"object": of_object, "array": of_array, "string": of_string, "number": of_number, "integer": of_number}
        named = kinds.get(schema.get("type")) if isinstance(schema.get("type"), str) and chance(0.9) else None
        (named or rng.choice(about))(depth, schema)
    return schema


def schema_of(depth):
    if depth <= 0:
        return rng.choice([True, {}, {"type": "integer"}, {"type": "string"}, {"const": value(0)}])
    kind = rng.random()
    if kind < 0.04:
        return chance(0.5)
    if kind < 0.45:
        schema = basic(depth)
    elif kind < 0.55:
        schema = {"enum": [value() for _ in range(rng.randrange(1, 4))]} if chance(0.5) else {"const": value()}
    elif kind < 0.63:
        schema = {"$ref": rng.choice(references)}
    else:
        keyword = rng.choice(["allOf", "allOf", "oneOf", "oneOf", "anyOf"])
        schema = {keyword: [schema_of(depth - 1) for _ in range(rng.randrange(1, 4))]}
        if keyword == "oneOf":
            schema[keyword] = [of_document(one) for one in schema[keyword]]
    # What stands beside it.
    if chance(0.1):
        schema["if"] = of_document(schema_of(depth - 1))
        for keyword in ("then", "else"):
            if chance(0.6):
                schema[keyword] = of_document(schema_of(depth - 1))
    if chance(0.05):
        schema["dependentSchemas"] = {rng.choice(names): of_document(schema_of(depth - 1))}
        schema.pop("unevaluatedProperties", None)  # old versions of jsonschema do not look there
    if chance(0.05):
        schema["not"] = of_document(schema_of(depth - 1))
    if chance(0.1):
        schema["nullable"] = True
    if chance(0.15):
        schema.update(basic(depth - 1))
    if isinstance(schema.get("additionalProperties"), dict):
        schema.pop("unevaluatedProperties", None)  # old versions of jsonschema read properties there
    if chance(0.05):
        schema["enum"] = [value() for _ in range(2)]
    if chance(0.05):
        schema["$id"] = f"http://127.0.0.1:9/{rng.randrange(10**6)}"
        schema["$defs"] = definitions(0)
    return schema


def definitions(depth):
    return {name: schema_of(depth) for name in names}


def document():
    schema = schema_of(3)
    if not isinstance(schema, dict):
        return schema
    made = definitions(rng.randrange(1, 3))
    for one in made.values():
        if isinstance(one, dict) and "$id" not in one:
            one["$anchor"] = "anchor"
            break
    return dict(schema, **{"$defs": made})


def texts():
    """Values as texts, and what no writer writes: members of one name, numbers that are not read as they are written."""
    for _ in range(12):
        yield json.dumps(value(2))
    some = json.dumps(value(0))
    yield '{"a":%s,"a":%s}' % (some, json.dumps(value(0)))
    yield '{"a":1,"\\u0061":%s}' % some
    for number in rng.sample(numbers, 3):
        yield f"{number}.00000000000000001" if isinstance(number, int) else f"{number}00000000000000001"[:18]
    yield rng.choice(["0.99999999999999999", "9007199254740993", "9007199254740993.0", "-0.00000000000000001", "2.0"])


class Unknown(Exception):
    """jsonschema cannot tell."""


def is_valid(validator, text):
    try:
        return validator.is_valid(json.loads(text))
    except (RecursionError, jsonschema.exceptions.RefResolutionError) as error:
        raise Unknown from error


refusals = collections.Counter()
compiled = drawn = taken = unknown = untold = 0
for _ in range(count):
    schema = document()
    tries = list(texts())
    got = talk.ask(schema=schema, take=tries, draw=8, seed=rng.randrange(2**31))
    if "error" in got:
        refusals[got["error"].split(" ", 1)[-1][:60]] += 1
        continue
    compiled += 1
    validator = jsonschema.Draft202012Validator(schema, format_checker=jsonschema.FormatChecker())
    got["drawn"] = [text for text in got["drawn"] if not text.endswith("<the end is far>")]
    all_taken = got["drawn"] + [text for text, is_taken in zip(tries, got["taken"]) if is_taken]
    drawn += len(got["drawn"])
    taken += len(all_taken) - len(got["drawn"])
    try:
        for text in all_taken:
            if is_valid(validator, text):
                continue
            if not knows_unevaluated and '"unevaluated' in json.dumps(schema):
                untold += 1
            else:
                fail(f"{json.dumps(schema)}: {text!r} is taken, and is not valid")
    except Unknown:
        unknown += 1
talk.end()
print(f"{compiled} schemas compiled, {drawn} texts drawn, {taken} others taken, {fail.count} invalid; "
      f"{unknown} schemas unknown to jsonschema, {untold} texts with unevaluated parts that it may not know")
if os.environ.get("LAMELLA_TELL"):
    for why, n in refusals.most_common(25):
        print(n, why)
if compiled < count // 10 or taken < count // 10 or unknown > count // 50:
    fail("too few texts were compared")
print("all ok" if fail.count == 0 else f"{fail.count} failures; LAMELLA_SEED={seed} draws the same again")
sys.exit(1 if fail.count else 0)
