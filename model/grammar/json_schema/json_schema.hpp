/// JSON Schemas as grammars: what structured output is asked for with.
#pragma once

#include "base/json.hpp"
#include "model/grammar/grammar.hpp"
#include "model/grammar/json_schema/json_schema_error.hpp"
#include "model/grammar/json_schema/json_schema_resources.hpp"
#include "model/grammar/json_schema/schema_reading.hpp"

namespace lamella::model {

/// Every text of the grammar is a JSON text that the schema takes, by any draft from 4 to 2020-12;
/// not every such text is in the grammar. docs/schemas.md says keyword by keyword what is promised,
/// and what is refused. In short:
///
/// - any keyword may stand beside any other; what cannot be kept to is an error that names it,
/// - members come in the order in which `properties` and `required` name them, others behind them,
/// - what a schema says nothing about is read as `reading` says,
/// - white space as in json_grammar.hpp; numbers have up to 18 digits before the point and 17
///   behind it, and strings with `pattern` or `format` escape only what must be.
///
/// Numbers are compared as the doubles that readers make of them. Annotations (title, description,
/// default …) and keywords that the standard does not know mean nothing, OpenAPI's `nullable`
/// among them: null is taken where `type` says so.
///
/// Compiled with bounded recursion, whatever the schema: what nests deeply, or is met again, is a
/// rule of its own, made later. Work and places are linear in the schema, and bounded: beyond that
/// it is an error.
///
/// Returns the first node; behind the value comes `next`. Throws json_schema_error, grammar_error.
///
/// All schemas of one grammar share the bound of the work.
grammar::node_id json_schema_grammar(grammar& g, const json_value& schema, grammar::node_id next,
                                     schema_reading reading = schema_reading::usual);

/// The same of a schema within a document, which its references are about.
grammar::node_id json_schema_grammar(grammar& g, const json_value& document,
                                     const schema_place& place, grammar::node_id next,
                                     schema_reading reading = schema_reading::usual);

} // namespace lamella::model
