/// A message is a plain struct: its fields, in their order, are what is sent. Nothing in a message
/// is a tensor: activations, K, V and weights never pass through a mailbox. The grammar of a name
/// tells its kind: a question is a verb and its answer a participle, a launch is one-way, a fact is
/// a past event.
#pragma once

#include <boost/pfr/core.hpp>
#include <caf/all.hpp>

#include <tuple>

namespace lamella::actors {

/// Is T a message or a part of one? True of those that the header of a conversation lists.
template <class T> inline constexpr bool is_sent = false;

/// Reads or writes all fields of a message or of a part of one, for CAF.
template <class Inspector, class T>
requires is_sent<T>
typename Inspector::result_type inspect(Inspector& f, T& x) {
  return std::apply([&](auto&... fields) { return f(caf::meta::type_name("message"), fields...); },
                    boost::pfr::structure_tie(x));
}

} // namespace lamella::actors

/// A struct that messages are made of.
#define LAMELLA_PART(type)                                                                         \
  template <> inline constexpr bool lamella::actors::is_sent<lamella::actors::type> = true;

/// CAF makes code wherever a message is sent or taken: how it is copied, written and read. It is
/// made once, in the source of the conversation.
#define LAMELLA_MESSAGE_CODE(where, type)                                                          \
  where template class caf::detail::tuple_vals_impl<caf::detail::message_data,                     \
                                                    lamella::actors::type>;                        \
  where template class caf::detail::tuple_vals_impl<caf::type_erased_tuple,                        \
                                                    lamella::actors::type>;                        \
  where template class caf::detail::tuple_vals<lamella::actors::type>;                             \
  where template class caf::detail::type_erased_value_impl<lamella::actors::type>;

/// What a conversation does with the list of its messages: in its header, in its source, and there
/// in the method of system_config that names them for other processes.
#define LAMELLA_MADE_ELSEWHERE(type)                                                               \
  LAMELLA_PART(type)                                                                               \
  LAMELLA_MESSAGE_CODE(extern, type)
#define LAMELLA_MADE_HERE(type) LAMELLA_MESSAGE_CODE(, type)
#define LAMELLA_REGISTER(type) add_message_type<type>("lamella::" #type);
