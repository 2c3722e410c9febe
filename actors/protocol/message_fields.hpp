/// How the fields of a message are read and written: for sources of conversations only. Whoever
/// sends a message calls what they instantiate, and compiles none of it.
#pragma once

#include "actors/protocol/exact_numbers.hpp"
#include "actors/protocol/message.hpp"

#include <boost/pfr/core.hpp>

#include <tuple>

namespace lamella::actors {

template <class Inspector, class T>
typename Inspector::result_type visit_fields(Inspector& f, T& x) {
  return std::apply(
      [&](auto&... fields) { return f(caf::meta::type_name(message_name<T>), as_sent(fields)...); },
      boost::pfr::structure_tie(x));
}

} // namespace lamella::actors

#define LAMELLA_FIELDS_OF(type, inspector)                                                         \
  template inspector::result_type lamella::actors::visit_fields(inspector&, lamella::actors::type&);
/// A conversation's source applies this to the list of its messages.
#define LAMELLA_MADE_HERE(type)                                                                    \
  LAMELLA_FIELDS_OF(type, caf::serializer)                                                         \
  LAMELLA_FIELDS_OF(type, caf::deserializer)                                                       \
  LAMELLA_FIELDS_OF(type, caf::detail::stringification_inspector)                                  \
  LAMELLA_MESSAGE_CODE(, type)
