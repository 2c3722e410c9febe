/// A service whose workers are actor systems of their own: everything between processes is real
/// (CAF's middleman on loopback, proofs, epochs, the data plane) but the walls of the processes.
#pragma once

#include "actors/worker/data_plane_port.hpp"
#include "actors/worker/worker_process.hpp"
#include "tests/actors/gateway/served.hpp"

#include <fstream>
#include <list>
#include <thread>

#include <sys/stat.h>

namespace lamella::actors::test {

/// One worker on a thread of its own.
class joined_worker {
public:
  joined_worker(worker_options options, net::shared_secret secret, link_port_maker links)
      : thread_{[this, options = std::move(options), secret = std::move(secret),
                 links = std::move(links)] {
          worker_process process{options, secret, links};
          while (!stop_) {
            last_ = process.run([this] { return stop_.load(); }, [this] { return hurry_.load(); });
            ++sessions_;
            if (last_ != session_end::lost && last_ != session_end::unreachable) break;
          }
          over_ = true;
        }} {}
  ~joined_worker() {
    stop_ = hurry_ = true;
    thread_.join();
  }
  /// As by SIGTERM.
  void leave() { stop_ = true; }
  bool over() const { return over_; }
  session_end last() const { return last_; }
  uint32_t sessions() const { return sessions_; }

private:
  std::atomic<bool> stop_{false}, hurry_{false}, over_{false};
  std::atomic<session_end> last_{session_end::stopped};
  std::atomic<uint32_t> sessions_{0};
  std::thread thread_;
};

struct joined {
  tests::scratch_folder folder;
  link_port_maker links = data_plane_links("127.0.0.1:0");
  std::filesystem::path secret_file = make_secret("secret", 's');
  config::settings settings;
  std::list<joined_worker> workers;
  std::unique_ptr<actors::node> node;

  /// `auto` takes all seats of a process for devices of one engine; here they are not.
  explicit joined(config::settings x, config::transport tier = config::transport::shm)
      : settings{std::move(x)} {
    settings.control.secret_file = secret_file;
    settings.net.transport = tier;
    // Machines that run tests stall for longer than a service would accept.
    settings.control.dead = std::chrono::seconds{120};
    node = std::make_unique<actors::node>(settings);
    node->connect_with(links);
  }
  ~joined() {
    node.reset(); // workers whose service is gone have nothing to wait for
    workers.clear();
  }

  std::filesystem::path make_secret(const std::string& name, char letter) {
    const auto file = folder / name;
    std::ofstream{file} << std::string(40, letter) << "\n";
    chmod(file.c_str(), 0400);
    return file;
  }

  worker_options options(scheduler::worker_role role, const std::string& name) const {
    worker_options x;
    x.role = role;
    x.name = name;
    x.join = {"127.0.0.1", node->control_port()};
    x.control = settings.control;
    return x;
  }
  joined_worker& add(const worker_options& x) {
    return workers.emplace_back(x, net::shared_secret::from_file(secret_file), links);
  }
  joined_worker& add(scheduler::worker_role role, const std::string& name) {
    return add(options(role, name));
  }

  /// Starts the service; `once` runs as soon as it listens for workers.
  void start(const std::function<void()>& once) {
    bool done = false;
    const bool ready = node->start([](const std::string&, uint64_t, uint64_t) {},
                                   [&] {
                                     if (!std::exchange(done, true)) once();
                                     return false;
                                   });
    REQUIRE(ready);
  }

  answer call(const std::string& method, const std::string& path, std::string body = {},
              bool admin = false) {
    net::http_call_request x;
    x.method = method;
    x.path = path;
    x.body = std::move(body);
    x.connect_timeout = x.idle_timeout = deadline;
    const auto port = admin ? node->admin_port() : node->http_port();
    return answer_of(net::http_client{{"127.0.0.1", port, ""}}.call(std::move(x)));
  }

  /// The service's status as soon as that holds of it; fails the test at the deadline. Workers that
  /// do not answer within a second are shown without their peers.
  json_value status_when(const std::function<bool(const json_value&)>& wanted) {
    json_value status;
    CHECK(eventually([&] {
      const auto x = call("GET", "/admin/status", {}, true);
      status = x.json;
      return x.status == 200 && wanted(status);
    }));
    return status;
  }
  /// Waits until so many requests run.
  void wait_for_running(int64_t least) {
    status_when([=](const json_value& x) { return int_at(x, "requests.running") >= least; });
  }

  /// All at once; the choices of each, or null and a failed check.
  std::vector<json_value> choices_of(const std::vector<std::string>& bodies) {
    net::http_client_loop loop;
    std::vector<json_value> result(bodies.size());
    bool refused = false;
    for (size_t i = 0; i < bodies.size(); ++i) {
      net::http_call_request x;
      x.method = "POST";
      x.path = "/v1/completions";
      x.body = bodies[i];
      x.connect_timeout = x.idle_timeout = deadline;
      net::http_call_events on;
      on.on_done = [&, i](const net::http_reply& reply) {
        CHECK_MESSAGE(reply.status == 200, reply.body);
        refused = refused || reply.status != 200;
        result[i] = at(answer_of(reply).json, "choices");
      };
      on.on_error = [](const net::http_call_error& e) { FAIL_CHECK(e.what()); };
      loop.call({"127.0.0.1", node->http_port(), ""}, std::move(x), std::move(on));
    }
    loop.run();
    if (refused) MESSAGE("what had happened: ", call("GET", "/admin/events", {}, true).body);
    return result;
  }
};

} // namespace lamella::actors::test
