#include "model/grammar/json_schema/string_formats.hpp"

#include <array>
#include <string>
#include <utility>

namespace lamella::model {

namespace {

#define LAMELLA_LEAP "([1-9][0-9](0[48]|[2468][048]|[13579][26])|([2468][048]|[13579][26])00)"
#define LAMELLA_DATE                                                                               \
  "([1-9][0-9]{3}-((0[13578]|1[02])-(0[1-9]|[12][0-9]|3[01])"                                      \
  "|(0[469]|11)-(0[1-9]|[12][0-9]|30)|02-(0[1-9]|1[0-9]|2[0-8]))|" LAMELLA_LEAP "-02-29)"
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

#define LAMELLA_IPV4 LAMELLA_BYTE "(\\." LAMELLA_BYTE "){3}"
// RFC 4291, with at most one gap.
#define LAMELLA_H16 "[0-9A-Fa-f]{1,4}"
#define LAMELLA_LS32 "(" LAMELLA_H16 ":" LAMELLA_H16 "|" LAMELLA_IPV4 ")"
#define LAMELLA_UP_TO(n) "((" LAMELLA_H16 ":){0," n "}" LAMELLA_H16 ")?::"
#define LAMELLA_IPV6                                                                               \
  "((" LAMELLA_H16 ":){6}" LAMELLA_LS32 "|::(" LAMELLA_H16 ":){5}" LAMELLA_LS32 "|(" LAMELLA_H16   \
  ")?::(" LAMELLA_H16 ":){4}" LAMELLA_LS32                                                         \
  "|" LAMELLA_UP_TO("1") "(" LAMELLA_H16 ":){3}" LAMELLA_LS32                                      \
                         "|" LAMELLA_UP_TO("2") "(" LAMELLA_H16 ":){2}" LAMELLA_LS32               \
                                                "|" LAMELLA_UP_TO("3") LAMELLA_H16                 \
      ":" LAMELLA_LS32 "|" LAMELLA_UP_TO("4") LAMELLA_LS32 "|" LAMELLA_UP_TO("5") LAMELLA_H16      \
      "|" LAMELLA_UP_TO("6") ")"
// RFC 3986; with `more` letters in RFC 3987.
#define LAMELLA_PERCENT "%[0-9A-Fa-f]{2}"
#define LAMELLA_PCHAR(more) "([A-Za-z0-9._~!$&'()*+,;=:@" more "-]|" LAMELLA_PERCENT ")"
#define LAMELLA_PATH(more) "(/" LAMELLA_PCHAR(more) "*)*"
#define LAMELLA_AUTHORITY(more)                                                                    \
  "(([A-Za-z0-9._~!$&'()*+,;=:" more "-]|" LAMELLA_PERCENT ")*@)?"                                 \
  "(([A-Za-z0-9._~!$&'()*+,;=" more "-]|" LAMELLA_PERCENT ")*|\\[" LAMELLA_IPV6 "\\])"             \
  "(:[0-9]{0,5})?"
#define LAMELLA_BEHIND(more)                                                                       \
  "(\\?(" LAMELLA_PCHAR(more) "|[/?])*)?(#(" LAMELLA_PCHAR(more) "|[/?])*)?"
#define LAMELLA_URI(more)                                                                          \
  "[A-Za-z][A-Za-z0-9+.-]*:(//" LAMELLA_AUTHORITY(more)                                            \
      LAMELLA_PATH(more) "|/(" LAMELLA_PCHAR(more) "+" LAMELLA_PATH(more) ")?|" LAMELLA_PCHAR(     \
          more) "+" LAMELLA_PATH(more) "|)" LAMELLA_BEHIND(more)
#define LAMELLA_REFERENCE(more)                                                                                \
  "(([A-Za-z][A-Za-z0-9+.-]*:)?(//" LAMELLA_AUTHORITY(more)                                                    \
      LAMELLA_PATH(more) "|/(" LAMELLA_PCHAR(more) "+" LAMELLA_PATH(                                           \
          more) ")?|)|[A-Za-z][A-Za-z0-9+.-]*:" LAMELLA_PCHAR(more) "+" LAMELLA_PATH(more) "|([A-"             \
                                                                                           "Za-"               \
                                                                                           "z0-9."             \
                                                                                           "_~!$&"             \
                                                                                           "'()*+"             \
                                                                                           ",;="               \
                                                                                           "@" more            \
                                                                                           "-]"                \
                                                                                           "|" LAMELLA_PERCENT \
                                                                                           ")"                 \
                                                                                           "+" LAMELLA_PATH(   \
                                                                                               more) ")" LAMELLA_BEHIND(more)
#define LAMELLA_LETTERS "\\u00A0-\\uD7FF\\uF900-\\uFDCF\\uFDF0-\\uFFEF"
#define LAMELLA_MAIL_ATOM(n) "[A-Za-z0-9!#$%&'*+/=?^_`{|}~-]{1," n "}"
// Up to 64 characters before the @, and 254 in all.
#define LAMELLA_MAIL                                                                               \
  LAMELLA_MAIL_ATOM("16")                                                                          \
  "(\\." LAMELLA_MAIL_ATOM("15") "){0,3}@" LAMELLA_MAIL_LABEL "(\\." LAMELLA_MAIL_LABEL "){0,3}"
#define LAMELLA_POINTER "(/([^~/\"\\\\]|~[01])*)*"
// Such as people write: characters, classes, escapes, each of which may be repeated.
#define LAMELLA_REGEX_CLASS "\\[\\^?(A-Z|a-z|0-9|[A-Za-z0-9_ .,:;@]|\\\\[dws])+\\]"
#define LAMELLA_REGEX                                                                              \
  "\\^?(([A-Za-z0-9 "                                                                              \
  "_,:;@%=&!~'<>#-]|\\\\[dDwWsSnrt.*+?^$(){}|\\[\\]/\\\\]|\\.|" LAMELLA_REGEX_CLASS                \
  ")[*+?]?)*\\$?"

constexpr std::array<std::pair<std::string_view, std::string_view>, 19> formats{{
    {"date-time", LAMELLA_DATE "T" LAMELLA_TIME},
    {"date", LAMELLA_DATE},
    {"time", LAMELLA_TIME},
    {"duration", "P(" LAMELLA_DIGITS "W|" LAMELLA_DURATION_DATE "(T" LAMELLA_DURATION_TIME
                 ")?|T" LAMELLA_DURATION_TIME ")"},
    {"email", LAMELLA_MAIL},
    {"idn-email", LAMELLA_MAIL},
    {"hostname", LAMELLA_HOST},
    {"idn-hostname", LAMELLA_HOST},
    {"ipv4", LAMELLA_IPV4},
    {"ipv6", LAMELLA_IPV6},
    {"uri", LAMELLA_URI("")},
    {"uri-reference", LAMELLA_REFERENCE("")},
    {"iri", LAMELLA_URI(LAMELLA_LETTERS)},
    {"iri-reference", LAMELLA_REFERENCE(LAMELLA_LETTERS)},
    {"uri-template",
     "([A-Za-z0-9._~!$&()*+,;=:@/?#-]|" LAMELLA_PERCENT "|\\{[A-Za-z0-9_]+(,[A-Za-z0-9_]+)*\\})*"},
    {"uuid", "[0-9a-fA-F]{8}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{12}"},
    {"json-pointer", LAMELLA_POINTER},
    {"relative-json-pointer", "(0|[1-9][0-9]{0,8})(#|" LAMELLA_POINTER ")"},
    {"regex", LAMELLA_REGEX},
}};

} // namespace

std::string_view format_expression(std::string_view format) {
  for (const auto& [name, expression] : formats)
    if (name == format) return expression;
  return {};
}

bool is_format(std::string_view format) { return !format_expression(format).empty(); }

std::string_view simple_format_expression(std::string_view format) {
#define LAMELLA_SIMPLE_LABEL "[A-Za-z0-9]+(-[A-Za-z0-9]+)*"
#define LAMELLA_SIMPLE_HOST LAMELLA_SIMPLE_LABEL "(\\." LAMELLA_SIMPLE_LABEL ")*"
#define LAMELLA_SIMPLE_ATOM "[A-Za-z0-9!#$%&'*+/=?^_`{|}~-]+"
#define LAMELLA_SIMPLE_URI                                                                         \
  "[A-Za-z][A-Za-z0-9+.-]*:(//[A-Za-z0-9._~-]*(:[0-9]{0,5})?(/" LAMELLA_PCHAR(                     \
      "") "*)*|" LAMELLA_PCHAR("") "+)" LAMELLA_BEHIND("")
  if (format == "email" || format == "idn-email")
    return LAMELLA_SIMPLE_ATOM "(\\." LAMELLA_SIMPLE_ATOM ")*@" LAMELLA_SIMPLE_HOST;
  if (format == "hostname" || format == "idn-hostname") return LAMELLA_SIMPLE_HOST;
  if (format == "uri" || format == "uri-reference" || format.starts_with("iri"))
    return LAMELLA_SIMPLE_URI;
  return format_expression(format);
}

} // namespace lamella::model
