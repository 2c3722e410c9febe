/// A message is a plain struct: its fields, in their order, are what is sent. Nothing in a message
/// is a tensor: activations, K, V and weights never pass through a mailbox. The grammar of a name
/// tells its kind: a question is a verb and its answer a participle, a launch is one-way, a fact is
/// a past event.
#pragma once

#include <caf/all.hpp>

namespace lamella::actors {

/// The name of a message, or of a part of one, in logs. Null: T is neither. The header of each
/// conversation lists its own.
template <class T> inline constexpr const char* message_name = nullptr;

/// Reads or writes all fields of a message or of a part of one: message_fields.hpp.
template <class Inspector, class T>
typename Inspector::result_type visit_fields(Inspector& f, T& x);

/// For CAF.
template <class Inspector, class T>
requires(message_name<T> != nullptr) typename Inspector::result_type inspect(Inspector& f, T& x) {
  return visit_fields(f, x);
}

} // namespace lamella::actors

namespace lamella::scheduler {

/// A value of the scheduler that is listed as a message, or as a part of one.
template <class Inspector, class T>
requires(actors::message_name<T> != nullptr) typename Inspector::result_type
    inspect(Inspector& f, T& x) {
  return actors::visit_fields(f, x);
}

} // namespace lamella::scheduler

/// Lists a struct that is a part of messages.
#define LAMELLA_PART(type)                                                                         \
  template <>                                                                                      \
  inline constexpr const char* lamella::actors::message_name<lamella::actors::type> =              \
      "lamella::" #type;

/// Code that CAF instantiates wherever a message is sent or received: how the message is copied,
/// written and read. The source of the conversation instantiates it once for all.
#define LAMELLA_MESSAGE_CODE(where, type)                                                          \
  where template class caf::detail::tuple_vals_impl<caf::detail::message_data,                     \
                                                    lamella::actors::type>;                        \
  where template class caf::detail::tuple_vals_impl<caf::type_erased_tuple,                        \
                                                    lamella::actors::type>;                        \
  where template class caf::detail::tuple_vals<lamella::actors::type>;                             \
  where template class caf::detail::type_erased_value_impl<lamella::actors::type>;

/// A conversation applies these to the list of its messages: ELSEWHERE in its header, HERE in its
/// source, and REGISTER in its method of system_config, which names the messages for other
/// processes.
#define LAMELLA_MADE_ELSEWHERE(type)                                                               \
  LAMELLA_PART(type)                                                                               \
  LAMELLA_MESSAGE_CODE(extern, type)
#define LAMELLA_REGISTER(type) add_message_type<type>("lamella::" #type);
