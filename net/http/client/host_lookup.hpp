/// Addresses of a host's name, waited for no longer than one cares to.
#pragma once

#include <chrono>
#include <functional>
#include <future>
#include <stdexcept>
#include <string>
#include <vector>

namespace lamella::net {

/// Gives the addresses of a name, in the order to try them; may block for as long as it likes.
/// Throws std::exception with the reason when there are none.
using host_lookup = std::function<std::vector<std::string>(const std::string& name)>;

/// As the system does it: files, DNS, whatever it is told to ask.
std::vector<std::string> system_lookup(const std::string& name);

/// The name was not looked up in time.
struct lookup_timeout : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// Addresses of `name`; of an address, itself, at once. The system's lookup cannot be cut short, so
/// it runs on a thread of its own, and one that hangs goes on there: who asks for the same name
/// meanwhile waits for that answer, so there is one such thread for a name at most. What `ask`
/// throws is in the answer.
std::shared_future<std::vector<std::string>> look_up(const std::string& name,
                                                     host_lookup ask = system_lookup);

/// The same for who can block: for `timeout` at most, then it throws lookup_timeout; and what
/// `ask` throws.
std::vector<std::string> addresses_of(const std::string& name, std::chrono::milliseconds timeout,
                                      host_lookup ask = system_lookup);

} // namespace lamella::net
