#include "net/http/client/http_client.hpp"

#include "net/http/sse.hpp"

#include <exception>
#include <mutex>
#include <optional>

namespace lamella::net {

using std::chrono::milliseconds;

struct http_client::impl {
  http_url url;
  std::string api_key;
  http_client_loop loop;
  std::mutex mutex;
  std::shared_ptr<http_call> current; ///< for abort(), which comes from other threads

  void set_current(std::shared_ptr<http_call> call) {
    const std::lock_guard lock(mutex);
    current = std::move(call);
  }

  /// Runs one call to its end; `on_data` may be empty.
  http_reply run(http_call_request request, std::function<void(std::string_view)> on_data) {
    if (!api_key.empty()) request.headers.set("authorization", "Bearer " + api_key);
    http_reply reply;
    std::optional<http_call_error> error;
    std::exception_ptr thrown; // by on_data: must not unwind through the loop
    http_call_events events;
    events.on_head = [&](int status, const http_headers& headers) {
      reply.status = status;
      reply.headers = headers;
    };
    if (on_data)
      events.on_data = [&](std::string_view bytes) {
        if (thrown) return;
        try {
          on_data(bytes);
        } catch (...) {
          thrown = std::current_exception();
          abort();
        }
      };
    events.on_done = [&](const http_reply& done) { reply = done; };
    events.on_error = [&](const http_call_error& failed) { error = failed; };
    set_current(loop.call(url, std::move(request), std::move(events)));
    loop.run();
    set_current(nullptr);
    if (thrown) std::rethrow_exception(thrown);
    if (error) throw *error;
    return reply;
  }

  void abort() {
    const std::lock_guard lock(mutex);
    if (current) current->abort();
  }
};

http_client::http_client(http_url url, std::string api_key) : impl_(std::make_unique<impl>()) {
  impl_->url = std::move(url);
  impl_->api_key = std::move(api_key);
}

http_client::~http_client() = default;

http_reply http_client::call(http_call_request request) {
  return impl_->run(std::move(request), {});
}

http_reply http_client::get(const std::string& path, milliseconds timeout) {
  http_call_request request;
  request.path = path;
  request.connect_timeout = request.idle_timeout = request.total_timeout = timeout;
  return call(std::move(request));
}

http_reply http_client::post(const std::string& path, std::string json, milliseconds timeout) {
  http_call_request request;
  request.method = "POST";
  request.path = path;
  request.body = std::move(json);
  request.connect_timeout = request.idle_timeout = request.total_timeout = timeout;
  return call(std::move(request));
}

http_reply http_client::stream(const std::string& path, std::string json,
                               const std::function<bool(std::string_view)>& on_event,
                               milliseconds idle_timeout) {
  http_call_request request;
  request.method = "POST";
  request.path = path;
  request.body = std::move(json);
  request.idle_timeout = idle_timeout;
  bool stopped = false;
  bool complete = false;
  int status = 0;
  sse_reader reader([&](std::string_view data) {
    if (stopped || complete) return;
    if (data == "[DONE]") {
      complete = true;
    } else if (!on_event(data)) {
      stopped = true;
      impl_->abort();
    }
  });
  http_reply reply;
  try {
    reply = impl_->run(std::move(request), [&](std::string_view bytes) { reader.feed(bytes); });
    status = reply.status;
  } catch (const http_call_error& error) {
    // Stopped by the caller, or cut after the end mark: nothing is missing.
    if (!complete && !(stopped && error.why == http_call_error::reason::aborted)) throw;
    reply.status = 200;
    return reply;
  } catch (const std::length_error& error) {
    throw http_call_error(http_call_error::reason::protocol, error.what());
  }
  if (status >= 200 && status < 300 && !complete && !stopped)
    throw http_call_error(http_call_error::reason::cut, "the stream ended without its end mark");
  return reply;
}

void http_client::abort() { impl_->abort(); }

} // namespace lamella::net
