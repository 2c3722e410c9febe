#include "model/grammar/json_schema/string_formats.hpp"

#include <array>
#include <utility>

namespace lamella::model {

namespace {

// The 29th of February is left out: whether there is one depends on the year.
#define LAMELLA_DATE                                                                               \
  "[1-9][0-9]{3}-((0[13578]|1[02])-(0[1-9]|[12][0-9]|3[01])"                                       \
  "|(0[469]|11)-(0[1-9]|[12][0-9]|30)|02-(0[1-9]|1[0-9]|2[0-8]))"
#define LAMELLA_TIME                                                                               \
  "([01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9](\\.[0-9]{1,9})?"                                       \
  "(Z|[+-]([01][0-9]|2[0-3]):[0-5][0-9])"
// No label has hyphens as its third and fourth character: those are kept for encodings of other
// letters (xn--), which have rules of their own. A name is shorter than 254 characters, whatever
// the length of its labels.
#define LAMELLA_LABEL_UP_TO(more)                                                                  \
  "[A-Za-z0-9]([A-Za-z0-9]|[A-Za-z0-9-]([A-Za-z0-9]|-[A-Za-z0-9])"                                 \
  "([A-Za-z0-9-]{0," more "}[A-Za-z0-9])?)?"
#define LAMELLA_HOST LAMELLA_LABEL_UP_TO("54") "(\\." LAMELLA_LABEL_UP_TO("54") "){0,3}"
#define LAMELLA_MAIL_LABEL LAMELLA_LABEL_UP_TO("36")
#define LAMELLA_DIGITS "[0-9]{1,9}"
// No unit is left out between two others (RFC 3339, appendix A).
#define LAMELLA_DURATION_DATE                                                                      \
  "(" LAMELLA_DIGITS "Y(" LAMELLA_DIGITS "M(" LAMELLA_DIGITS "D)?)?|" LAMELLA_DIGITS               \
  "M(" LAMELLA_DIGITS "D)?|" LAMELLA_DIGITS "D)"
#define LAMELLA_DURATION_TIME                                                                      \
  "(" LAMELLA_DIGITS "H(" LAMELLA_DIGITS "M(" LAMELLA_DIGITS "S)?)?|" LAMELLA_DIGITS               \
  "M(" LAMELLA_DIGITS "S)?|" LAMELLA_DIGITS "S)"
#define LAMELLA_BYTE "(25[0-5]|2[0-4][0-9]|1[0-9][0-9]|[1-9]?[0-9])"

constexpr std::array<std::pair<std::string_view, std::string_view>, 11> formats{{
    {"date-time", LAMELLA_DATE "T" LAMELLA_TIME},
    {"date", LAMELLA_DATE},
    {"time", LAMELLA_TIME},
    {"duration", "P(" LAMELLA_DIGITS "W|" LAMELLA_DURATION_DATE "(T" LAMELLA_DURATION_TIME
                 ")?|T" LAMELLA_DURATION_TIME ")"},
    // Up to 64 characters before the @, and 254 in all.
    {"email", "[A-Za-z0-9_+-]{1,16}(\\.[A-Za-z0-9_+-]{1,15}){0,3}@" LAMELLA_MAIL_LABEL
              "(\\." LAMELLA_MAIL_LABEL "){1,3}"},
    {"hostname", LAMELLA_HOST},
    {"ipv4", LAMELLA_BYTE "(\\." LAMELLA_BYTE "){3}"},
    {"ipv6", "([0-9a-f]{1,4}:){7}[0-9a-f]{1,4}"},
    {"uri", "https?://" LAMELLA_HOST "(:[1-9][0-9]{0,3})?(/[A-Za-z0-9._~!$&'()*+,;=:@-]*)*"},
    {"uuid", "[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}"},
    {"json-pointer", "(/([^~/\"\\\\]|~[01])*)*"},
}};

} // namespace

std::string_view format_expression(std::string_view format) {
  for (const auto& [name, expression] : formats)
    if (name == format) return expression;
  return {};
}

std::string format_names() {
  std::string names;
  for (const auto& [name, expression] : formats) {
    if (!names.empty()) names += ", ";
    names += name;
  }
  return names;
}

} // namespace lamella::model
