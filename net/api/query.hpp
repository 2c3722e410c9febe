/// The query of a request: which names a route knows.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace lamella::net {

/// Throws api_error (400) where the query has a name that is not `known`, a name twice, or an
/// escape that is none: `route`, such as "POST /admin/trace", and the known names are part of the
/// message.
void check_query(std::string_view query, std::span<const std::string_view> known,
                 std::string_view route);

/// Throws api_error (400) where the query asks for a stream, by the name that OpenAI's clients use.
/// For routes whose answers are always whole.
void refuse_stream_in_query(std::string_view query);

/// Names that the query of a public route has in vain, each with a ? before it, 16 at most. Clients
/// send `beta` (Anthropic's) and `api-version` (Azure's) to every server: these are left out.
std::vector<std::string> unknown_in_query(std::string_view query);

} // namespace lamella::net
