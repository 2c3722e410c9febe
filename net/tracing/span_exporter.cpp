#include "net/tracing/span_exporter.hpp"

#include "net/http/client/host_lookup.hpp"
#include "net/http/client/http_client.hpp"

#include <algorithm>
#include <charconv>
#include <condition_variable>
#include <deque>
#include <mutex>
#include <optional>
#include <thread>

namespace lamella::net {

namespace {

using clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

/// Answers of collectors are short.
constexpr size_t reply_bytes_max = 64 << 10;

/// What OTLP/HTTP says to try again; all other refusals are final.
bool worth_another_try(int status) {
  return status == 429 || status == 502 || status == 503 || status == 504;
}

/// How long the collector asks to wait; nothing where it does not say in seconds.
std::optional<milliseconds> asked_pause(const http_reply& reply) {
  const auto text = reply.headers.get("retry-after");
  uint32_t seconds = 0;
  const auto [end, bad] = std::from_chars(text.data(), text.data() + text.size(), seconds);
  if (text.empty() || bad != std::errc{} || end != text.data() + text.size()) return {};
  return milliseconds{std::chrono::seconds{seconds}};
}

/// What came of one POST.
struct outcome {
  bool taken = false;
  bool again = false;
  uint64_t rejected = 0; ///< of what was taken
  std::optional<milliseconds> pause;
  std::string why; ///< it was not taken
};

} // namespace

struct span_exporter::impl {
  explicit impl(span_exporter_settings x) : settings{std::move(x)} {}

  const span_exporter_settings settings;
  std::mutex mutex;
  std::condition_variable changed;
  std::deque<span> queue;
  std::string url;
  std::optional<http_url> endpoint;       ///< of `url`
  uint64_t endpoints = 0;                 ///< so far: a batch goes to the one that it was taken for
  std::optional<clock::time_point> stops; ///< when all must be over
  std::shared_ptr<http_client> running;   ///< for stop()
  bool ended = false;
  bool failing = false; ///< of the exporter's thread
  std::thread thread;

  void lose(span_loss why, size_t spans) const {
    if (spans > 0 && settings.on_lost) settings.on_lost(why, spans);
  }

  /// Must hold the lock. The time that a step may still take.
  milliseconds left(milliseconds wanted) const {
    if (!stops) return wanted;
    const auto rest = std::chrono::duration_cast<milliseconds>(*stops - clock::now());
    return std::clamp(rest, milliseconds{0}, wanted);
  }

  milliseconds time_for_call() {
    const std::lock_guard lock{mutex};
    return left(settings.call_timeout);
  }

  void run() {
    std::unique_lock lock{mutex};
    while (true) {
      changed.wait(lock, [&] { return stops || !queue.empty(); });
      changed.wait_for(lock, settings.gather, [&] {
        return stops || queue.size() >= settings.batch_spans || queue.empty();
      });
      if (stops && (queue.empty() || left(settings.flush).count() == 0)) break;
      if (queue.empty() || !endpoint) continue;
      std::vector<span> batch;
      while (!queue.empty() && batch.size() < settings.batch_spans) {
        batch.push_back(std::move(queue.front()));
        queue.pop_front();
      }
      send(lock, batch);
    }
    const auto rest = queue.size();
    queue.clear();
    ended = true;
    lock.unlock();
    lose(span_loss::stopped, rest);
    changed.notify_all();
  }

  /// Tries until the collector has taken the batch, or refused it for good. Takes and gives back
  /// the lock.
  void send(std::unique_lock<std::mutex>& lock, const std::vector<span>& batch) {
    const auto to = *endpoint;
    const auto mine = endpoints;
    const auto body = otlp_traces(settings.source, batch);
    auto pause = settings.backoff;
    for (uint32_t i = 0;; ++i) {
      const auto x = post(lock, to, body);
      if (x.taken) {
        const auto rejected = std::min<uint64_t>(x.rejected, batch.size());
        failing = false;
        if (settings.on_exported) settings.on_exported(batch.size() - rejected);
        return lose(span_loss::collector, rejected);
      }
      const bool gone = endpoints != mine || left(settings.flush).count() == 0;
      if (gone) return lose(span_loss::stopped, batch.size());
      if (!x.again || i + 1 >= settings.tries) {
        if (!std::exchange(failing, true) && settings.on_failing) settings.on_failing(x.why);
        return lose(span_loss::collector, batch.size());
      }
      const auto wait = std::min(std::max(pause, x.pause.value_or(pause)), settings.backoff_most);
      pause = std::min(2 * pause, settings.backoff_most);
      changed.wait_for(lock, left(wait), [&] { return stops || endpoints != mine; });
    }
  }

  /// One try, without the lock.
  outcome post(std::unique_lock<std::mutex>& lock, const http_url& to, const std::string& body) {
    const auto client = running = std::make_shared<http_client>(to);
    lock.unlock();
    outcome x;
    try {
      // A name that the system looks up for ever would hold the call.
      addresses_of(to.host, settings.flush);
      const auto time = std::max(time_for_call(), milliseconds{1});
      http_call_request request;
      request.method = "POST";
      request.path = "/v1/traces";
      request.headers.set("content-type", otlp_content_type);
      request.body = body;
      request.connect_timeout = request.idle_timeout = request.total_timeout = time;
      request.body_bytes_max = reply_bytes_max;
      const auto reply = client->call(std::move(request));
      x.taken = reply.status >= 200 && reply.status < 300;
      x.again = worth_another_try(reply.status);
      if (x.taken)
        x.rejected = otlp_rejected(reply.body);
      else
        x.why = "it answers " + std::to_string(reply.status);
      x.pause = asked_pause(reply);
    } catch (const std::exception& e) { // not there, too slow, or no HTTP
      x.again = true;
      x.why = e.what();
    }
    lock.lock();
    running = nullptr;
    return x;
  }
};

span_exporter::span_exporter(span_exporter_settings settings)
    : impl_{std::make_unique<impl>(std::move(settings))} {}

span_exporter::~span_exporter() { stop(); }

void span_exporter::set_endpoint(const std::string& url) {
  auto& x = *impl_;
  const auto to = url.empty() ? std::optional<http_url>{} : parse_http_url(url);
  size_t dropped = 0;
  {
    const std::lock_guard lock{x.mutex};
    if (x.stops || url == x.url) return;
    x.url = url;
    x.endpoint = to;
    ++x.endpoints;
    if (x.running) x.running->abort(); // what is sent now is for the one before
    if (!to) {
      dropped = x.queue.size();
      x.queue.clear();
    } else if (!x.thread.joinable()) {
      x.thread = std::thread{[&x] { x.run(); }};
    }
    on_ = to.has_value();
  }
  x.lose(span_loss::stopped, dropped);
  x.changed.notify_all();
}

void span_exporter::offer(std::vector<span> spans) {
  auto& x = *impl_;
  const auto count = spans.size();
  std::optional<span_loss> why;
  bool wakes = false;
  {
    const std::lock_guard lock{x.mutex};
    wakes = x.queue.empty() || x.queue.size() + count >= x.settings.batch_spans;
    if (x.stops || !x.endpoint)
      why = span_loss::stopped;
    else if (x.queue.size() + count > x.settings.queue_spans)
      why = span_loss::queue;
    else
      std::ranges::move(spans, std::back_inserter(x.queue));
  }
  if (why) return x.lose(*why, count);
  if (wakes) x.changed.notify_all();
}

void span_exporter::stop() {
  auto& x = *impl_;
  on_ = false;
  {
    std::unique_lock lock{x.mutex};
    if (!x.stops) x.stops = clock::now() + x.settings.flush;
    if (!x.thread.joinable()) return;
    x.changed.notify_all();
    const auto ended = [&] { return x.ended; };
    x.changed.wait_until(lock, *x.stops, ended);
    while (!x.changed.wait_for(lock, milliseconds{20}, ended)) // its call may begin only now
      if (x.running) x.running->abort();
  }
  x.thread.join();
}

} // namespace lamella::net
