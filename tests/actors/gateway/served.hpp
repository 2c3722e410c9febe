/// A whole node on a tiny model with free ports, and clients of it.
#pragma once

#include "actors/node/node.hpp"
#include "actors/node/pipeline_parts.hpp"
#include "actors/protocol/admission.hpp"
#include "actors/protocol/epochs.hpp"
#include "actors/protocol/kv.hpp"
#include "base/failpoint.hpp"
#include "base/json.hpp"
#include "net/http/client/http_client.hpp"
#include "tests/scratch_folder.hpp"
#include "tests/tiny_model.hpp"

#include <doctest/doctest.h>
#include <spdlog/spdlog.h>

#include <charconv>
#include <functional>
#include <thread>

namespace lamella::actors::test {

/// Generous: only a broken program waits so long. Machines that run tests stand still for seconds.
constexpr std::chrono::seconds deadline{300};

/// A model file that lives as long as the test program.
inline std::filesystem::path tiny_model(const tests::tiny_model_options& options = {}) {
  static tests::scratch_folder folder;
  const auto path = folder / ("tiny-" + std::to_string(options.layers) + ".gguf");
  if (!std::filesystem::exists(path)) tests::write_tiny_model(path, options);
  return path;
}

inline config::settings tiny_settings(uint32_t layers = 3) {
  spdlog::set_level(spdlog::level::off);
  tests::tiny_model_options model;
  model.layers = layers;
  config::settings x;
  x.http.listen = x.admin.listen = "127.0.0.1:0";
  x.model.path = tiny_model(model);
  x.model.name = "tiny";
  x.shutdown.drain = deadline;
  // What a test asks again is to be computed again; prefix_cache_test.cpp has the others.
  x.kv.prefix_cache = std::chrono::milliseconds{0};
  return x;
}

/// True as soon as the condition holds, false at the deadline.
template <class Condition> bool eventually(Condition holds) {
  const auto until = std::chrono::steady_clock::now() + deadline;
  while (!holds()) {
    if (std::chrono::steady_clock::now() > until) return false;
    std::this_thread::sleep_for(
        std::chrono::milliseconds{1}); // between two looks, never instead of one
  }
  return true;
}

/// A failpoint, armed while this lives.
struct armed {
  explicit armed(const std::string& text) { arm_failpoint(text); }
  ~armed() { disarm_failpoints(); }
  armed(const armed&) = delete;
  armed& operator=(const armed&) = delete;
};

/// While this lives every token of a batch takes so long: what runs is certain to run on until a
/// test has done to it what it wants to do, however late the test is.
struct slow_tokens : armed {
  explicit slow_tokens(std::chrono::milliseconds each = std::chrono::milliseconds{500})
      : armed{"batch.commit=1:delay:" + std::to_string(each.count())} {}
};

/// The value at a dotted path of names and indices; null when there is none.
inline json_value at(const json_value& root, std::string_view path) {
  const auto* x = &root;
  while (!path.empty() && x != nullptr) {
    const auto dot = path.find('.');
    const auto name = path.substr(0, dot);
    path = dot == std::string_view::npos ? std::string_view{} : path.substr(dot + 1);
    if (const auto* items = x->get_if<json_value::array>()) {
      size_t index = 0;
      std::from_chars(name.data(), name.data() + name.size(), index);
      x = index < items->size() ? &(*items)[index] : nullptr;
    } else {
      x = x->find(name);
    }
  }
  return x == nullptr ? json_value{} : *x;
}

inline std::string text_at(const json_value& root, std::string_view path) {
  const auto found = at(root, path);
  const auto* text = found.get_if<std::string>();
  return text == nullptr ? std::string{"(no text at "} + std::string{path} + ")" : *text;
}

inline int64_t int_at(const json_value& root, std::string_view path) {
  const auto found = at(root, path);
  const auto* number = found.get_if<int64_t>();
  return number == nullptr ? -1 : *number;
}

inline double number_at(const json_value& root, std::string_view path) {
  const auto found = at(root, path);
  if (const auto* d = found.get_if<double>()) return *d;
  if (const auto* i = found.get_if<int64_t>()) return static_cast<double>(*i);
  return -1e300;
}

inline size_t size_at(const json_value& root, std::string_view path) {
  const auto found = at(root, path);
  const auto* items = found.get_if<json_value::array>();
  return items == nullptr ? 0 : items->size();
}

struct answer {
  int status = 0;
  net::http_headers headers;
  std::string body;
  json_value json;
};

inline answer answer_of(const net::http_reply& x) {
  answer result{x.status, x.headers, x.body, {}};
  if (x.headers.get("content-type").starts_with("application/json"))
    result.json = parse_json(x.body);
  return result;
}

/// A streamed answer: its events, and whether the end mark came.
struct events {
  int status = 0;
  std::vector<json_value> chunks;
  std::string text; ///< of choice 0
  bool complete = false;
};

/// Replicas and shards of the epoch that the node serves.
inline std::vector<caf::strong_actor_ptr> worker_parts(const actors::node& n) {
  std::vector<caf::strong_actor_ptr> result;
  for (const auto& x : n.parts().workers->replicas)
    result.push_back(caf::actor_cast<caf::strong_actor_ptr>(x));
  for (const auto& x : n.parts().workers->shards)
    result.push_back(caf::actor_cast<caf::strong_actor_ptr>(x));
  return result;
}

class served {
public:
  explicit served(config::settings x = tiny_settings(),
                  const std::function<void(actors::node&)>& prepare = {})
      : node_{std::move(x)} {
    if (prepare) prepare(node_);
    node_.start([](const std::string&, uint64_t, uint64_t) {});
    // The first token was its canary's, which may still have its seat.
    if (!eventually([&] { return idle(); })) throw std::runtime_error{"the canary stays"};
  }

  actors::node& node() { return node_; }
  net::http_url url() const { return {"127.0.0.1", node_.http_port(), ""}; }
  net::http_url admin_url() const { return {"127.0.0.1", node_.admin_port(), ""}; }

  answer post(const std::string& path, std::string body, net::http_headers headers = {}) {
    net::http_call_request x;
    x.method = "POST";
    x.path = path;
    x.body = std::move(body);
    x.headers = std::move(headers);
    return call(url(), std::move(x));
  }
  answer options(const std::string& path) { return call(url(), request_of("OPTIONS", path)); }
  answer get(const std::string& path) { return call(url(), request_of("GET", path)); }
  answer admin(const std::string& method, const std::string& path, net::http_headers headers = {}) {
    auto x = request_of(method, path);
    x.headers = std::move(headers);
    return call(admin_url(), std::move(x));
  }

  events stream(const std::string& path, const std::string& body) {
    events result;
    net::http_client client{url()};
    const auto reply = client.stream(
        path, body,
        [&](std::string_view data) {
          result.chunks.push_back(parse_json(data));
          const auto& x = result.chunks.back();
          if (int_at(x, "choices.0.index") == 0) {
            const auto piece =
                at(x, path == "/v1/completions" ? "choices.0.text" : "choices.0.delta.content");
            if (const auto* text = piece.get_if<std::string>()) result.text += *text;
          }
          return true;
        },
        deadline);
    result.status = reply.status;
    result.complete = reply.status == 200; // a stream cut short throws
    return result;
  }

  /// All at once, each on a connection of its own; answers in the order of the bodies.
  std::vector<answer> post_all(const std::string& path, const std::vector<std::string>& bodies) {
    net::http_client_loop loop;
    std::vector<answer> answers(bodies.size());
    for (size_t i = 0; i < bodies.size(); ++i) {
      auto x = request_of("POST", path);
      x.body = bodies[i];
      x.connect_timeout = x.idle_timeout = deadline;
      net::http_call_events on;
      on.on_done = [&answers, i](const net::http_reply& reply) { answers[i] = answer_of(reply); };
      on.on_error = [&answers, i](const net::http_call_error& e) { answers[i].body = e.what(); };
      loop.call(url(), std::move(x), std::move(on));
    }
    loop.run();
    return answers;
  }

  /// KV slots in use, over all tables. While the pipeline is being rebuilt: more than there are.
  uint64_t slots_used() {
    caf::scoped_actor self{node_.system()};
    uint64_t used = 0;
    self->request(node_.server()->allocator, deadline, actors::status_atom_v)
        .receive(
            [&](const actors::kv_usage& x) {
              for (auto n : x.used) used += n;
            },
            [&](caf::error&) { used = ~uint64_t{0}; });
    return used;
  }

  /// Sequences that run and prompts that wait.
  std::pair<uint64_t, uint64_t> load() {
    caf::scoped_actor self{node_.system()};
    std::pair<uint64_t, uint64_t> result{0, ~uint64_t{0}}; // while there is no scheduler
    self->request(node_.server()->scheduler, deadline, actors::status_atom_v)
        .receive(
            [&](const actors::queue_status& queue) {
              result = {queue.running, queue.waiting};
            },
            [](caf::error&) {});
    return result;
  }

  /// Nothing runs, nothing waits, every slot is free.
  bool idle() { return slots_used() == 0 && load() == std::pair<uint64_t, uint64_t>{0, 0}; }

  /// The value of a metric, all of its series together.
  double metric(const std::string& name) {
    const auto page = node_.parts().metrics->scrape().body;
    double sum = 0;
    bool found = false;
    for (size_t from = 0; from < page.size();) {
      const auto end = page.find('\n', from);
      const auto line = page.substr(from, end - from);
      from = end == std::string::npos ? page.size() : end + 1;
      if (!line.starts_with(name + "{") && !line.starts_with(name + " ")) continue;
      found = true;
      sum += std::stod(line.substr(line.rfind(' ') + 1));
    }
    REQUIRE_MESSAGE(found, "no metric " << name);
    return sum;
  }

private:
  static net::http_call_request request_of(const std::string& method, const std::string& path) {
    net::http_call_request x;
    x.method = method;
    x.path = path;
    return x;
  }
  static answer call(net::http_url where, net::http_call_request x) {
    x.connect_timeout = x.idle_timeout = deadline;
    return answer_of(net::http_client{std::move(where)}.call(std::move(x)));
  }

  actors::node node_;
};

/// A request as bytes, for a client that sends them itself.
inline std::string raw_post(const std::string& body, const std::string& path = "/v1/completions") {
  return "POST " + path
         + " HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\n"
           "content-length: "
         + std::to_string(body.size()) + "\r\n\r\n" + body;
}

/// "[3,4,...]": `count` token ids of plain bytes, different for each seed.
inline std::string token_list(uint32_t count, uint64_t seed) {
  tests::splitmix random{seed};
  std::string result = "[";
  for (uint32_t i = 0; i < count; ++i)
    result += (i == 0 ? "" : ",") + std::to_string(3 + random.below(256));
  return result + "]";
}

} // namespace lamella::actors::test
