/// JSON Schemas as grammars: what structured output is asked for with.
#pragma once

#include "base/json.hpp"
#include "model/grammar/grammar.hpp"
#include "model/grammar/json_schema/json_schema_error.hpp"

namespace lamella::model {

/// Every text of the grammar is a JSON text that the schema (2020-12) takes; not every such text is
/// in the grammar:
///
/// - members come in the order of `properties`, and others only where `additionalProperties` or
///   `unevaluatedProperties` says so (a schema without properties says so by being silent),
/// - without a `type`, values are of the type that the other keywords are about,
/// - white space as in json_grammar.hpp; numbers have up to 18 digits before the point and 17
///   behind it, and strings with `pattern` or `format` escape only what must be,
/// - `oneOf` must be of alternatives that exclude each other: of different types, or constants, or
///   objects with a required member whose constants differ,
/// - `allOf` must be of objects, no member of which two of them say something about, or of one
///   schema,
/// - `minProperties` is at most 1: readers take two members of one name for one.
///
/// Numbers are compared as the doubles that readers make of them.
///
/// A keyword that cannot be kept to is an error that names it. Annotations (title, description,
/// default …) and keywords that the standard does not know mean nothing, OpenAPI's `nullable`
/// among them: null is taken where `type` says so.
///
/// Compiled with bounded recursion, whatever the schema: what nests deeply, or is met again, is a
/// rule of its own, made later. Work and places are linear in the schema, and bounded: beyond that
/// it is an error.
///
/// Returns the first node; behind the value comes `next`. Throws json_schema_error, grammar_error.
grammar::node_id json_schema_grammar(grammar& g, const json_value& schema, grammar::node_id next);

} // namespace lamella::model
