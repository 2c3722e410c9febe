#include "net/http/client/host_lookup.hpp"

#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>

#include <future>
#include <map>
#include <mutex>
#include <thread>

namespace lamella::net {

namespace {

using addresses = std::vector<std::string>;

/// Lookups under way.
struct lookups {
  std::mutex mutex;
  std::map<std::string, std::shared_future<addresses>> by_name;
};

/// Never destroyed: a lookup that hangs may outlive everything else.
lookups& under_way() {
  static auto* const all = new lookups;
  return *all;
}

std::shared_future<addresses> begin(const std::string& name, host_lookup ask) {
  auto& all = under_way();
  const std::lock_guard lock{all.mutex};
  if (const auto found = all.by_name.find(name); found != all.by_name.end()) return found->second;
  const auto promise = std::make_shared<std::promise<addresses>>();
  auto answer = promise->get_future().share();
  std::thread{[promise, name, ask = std::move(ask)] {
    std::exception_ptr failure;
    addresses found;
    try {
      found = ask(name);
    } catch (...) {
      failure = std::current_exception();
    }
    {
      auto& known = under_way();
      const std::lock_guard again{known.mutex};
      known.by_name.erase(name);
    }
    if (failure)
      promise->set_exception(failure);
    else
      promise->set_value(std::move(found));
  }}.detach();
  all.by_name.emplace(name, answer);
  return answer;
}

} // namespace

std::vector<std::string> system_lookup(const std::string& name) {
  boost::asio::io_context io{1};
  boost::asio::ip::tcp::resolver resolver{io};
  boost::system::error_code ec;
  addresses result;
  for (const auto& x : resolver.resolve(name, "", ec))
    result.push_back(x.endpoint().address().to_string());
  if (ec) throw std::runtime_error{ec.message()};
  return result;
}

std::shared_future<addresses> look_up(const std::string& name, host_lookup ask) {
  boost::system::error_code not_one;
  boost::asio::ip::make_address(name, not_one);
  if (not_one) return begin(name, std::move(ask));
  std::promise<addresses> itself;
  itself.set_value({name});
  return itself.get_future().share();
}

std::vector<std::string> addresses_of(const std::string& name, std::chrono::milliseconds timeout,
                                      host_lookup ask) {
  const auto answer = look_up(name, std::move(ask));
  if (answer.wait_for(timeout) != std::future_status::ready)
    throw lookup_timeout{"name lookup timed out after " + std::to_string(timeout.count()) + " ms"};
  return answer.get();
}

} // namespace lamella::net
