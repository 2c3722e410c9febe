/// The flags of `lamella pools`, `lamella scale` and `lamella drain`, and the wait for the end of a
/// change.
#include "base/json_writer.hpp"
#include "cli/app.hpp"
#include "cli/client/admin.hpp"
#include "cli/client/pools.hpp"
#include "cli/client/table.hpp"
#include "cli/http_status.hpp"

#include <fmt/format.h>

#include <cstdio>
#include <functional>
#include <memory>
#include <optional>
#include <thread>

namespace lamella::cli {

namespace {

using clock = std::chrono::steady_clock;

constexpr std::chrono::milliseconds between_looks{200};
constexpr uint64_t kv_bytes_min = uint64_t{1} << 20, kv_bytes_max = uint64_t{1} << 46; // kv.bytes

struct change_options {
  admin_choice admin;
  std::string what;                   ///< POOL=N, or a worker
  std::string partition;              ///< of a cell; empty: as it is
  std::optional<uint64_t> kv_bytes{}; ///< of each member; nothing: as it is
  bool no_wait = false;
  double timeout_seconds = 900;
};

/// An answer that is no success. The server's reason of a refusal stands alone.
command_error failed(const net::http_reply& reply, const std::string& what) {
  if (reply.status == http_status::not_found)
    return {exit_failure, what + ": the server does not know this request",
            "--admin must be the admin.listen of a 'lamella serve' of this version"};
  if (reply.status != http_status::conflict) return admin_refused(reply);
  const auto envelope = parse_answer(reply.body);
  return {exit_failure, what + ": " + text_or(find_path(envelope, {"error", "message"}), "refused"),
          "'lamella pools' shows the pools, 'lamella status' their workers"};
}

json_value get(net::http_client& client, const std::string& path) {
  const auto reply = admin_get(client, path);
  if (reply.status != http_status::ok) throw failed(reply, path);
  return parse_answer(reply.body);
}

pool_state ask(net::http_client& client, const std::string& path, std::string body,
               const std::string& what) {
  net::http_reply reply;
  try {
    reply = client.post(path, std::move(body), admin_timeout);
  } catch (const net::http_call_error& e) {
    throw admin_unreachable(e);
  }
  if (reply.status != http_status::ok && reply.status != http_status::accepted)
    throw failed(reply, what);
  return pool_state_of(parse_answer(reply.body));
}

/// Shows each state once.
class progress {
public:
  void show(const pool_state& x) {
    if (shown_ == x) return;
    shown_ = x;
    say(line_of(x));
  }
  static void say(const std::string& line) {
    std::printf("%s\n", line.c_str());
    std::fflush(stdout);
  }

private:
  pool_state shown_;
};

/// What a change that was begun has become.
pool_state find_change(const json_value& pools, const pool_state& begun) {
  for (const auto& each : items_of(pools, "pools"))
    if (auto x = pool_state_of(each); x.pool == begun.pool) return x;
  throw command_error{exit_failure, "the server does not tell of the pool " + begun.pool + " now"};
}

/// Looks until `ended` is true. Throws command_error (1) after the timeout.
void wait_until(const change_options& options, const std::function<bool()>& ended) {
  const auto limit = std::chrono::milliseconds{static_cast<int64_t>(options.timeout_seconds * 1e3)};
  for (const auto end = clock::now() + limit; !ended();) {
    if (clock::now() >= end)
      throw command_error{
          exit_failure,
          fmt::format("it is still under way after {} s, and goes on", options.timeout_seconds),
          "'lamella pools' shows its end; --timeout SECONDS waits longer"};
    std::this_thread::sleep_for(between_looks);
  }
}

/// Whether the change of a pool's size has ended well; throws command_error (1) if it has not.
bool has_ended(const pool_state& now, const pool_state& begun) {
  if (now.queued() && now.from == begun.members) return true; // the next one waits
  if (now.from != begun.from || now.members != begun.members)
    throw command_error{exit_failure, "another change of the pool has followed: " + line_of(now),
                        "'lamella pools' shows the size that serves"};
  if (now.rolled_back())
    throw command_error{exit_failure,
                        fmt::format("rolled back: the pool {} still has {} member(s): {}", now.pool,
                                    now.from, now.reason),
                        "'lamella status' shows the workers, and the server's log says more"};
  return !now.under_way();
}

void say_not_waited(const pool_state& x) {
  if (x.under_way()) progress::say("'lamella pools' shows when it is done");
}

int scale(const change_options& options) {
  const auto size = wanted_size_of(options.what);
  const auto client = options.admin.client();
  json_writer body;
  body.begin_object().member("pool", size.pool).member("members", size.members);
  if (!options.partition.empty()) body.member("partition", options.partition);
  if (options.kv_bytes) body.member("kv_bytes", *options.kv_bytes);
  body.end_object();
  const auto begun = ask(*client, "/admin/scale", body.take(), "cannot scale " + options.what);
  progress shows;
  shows.show(begun);
  if (begun.is_short())
    throw command_error{
        exit_failure,
        fmt::format("the pool {} has {} of the {} member(s) that it should have: {}", begun.pool,
                    begun.from, begun.members, begun.reason),
        "'lamella status' shows which workers are missing"};
  if (options.no_wait) {
    say_not_waited(begun);
  } else if (begun.under_way()) {
    wait_until(options, [&] {
      const auto now = find_change(get(*client, "/admin/pools"), begun);
      const bool ended = has_ended(now, begun);
      shows.show(now);
      return ended;
    });
  }
  return exit_success;
}

/// Whether the worker is gone: nobody, or its successor, sits in its seat. Throws command_error (1)
/// where it keeps its part.
bool has_left(const json_value& status, const seated& before, const std::string& worker) {
  if (!sits(status, before)) return true;
  if (stays(status, before.seat))
    throw command_error{exit_failure, "the drain of " + worker + " was given up: it keeps its part",
                        "'lamella events' shows why; with a spare, or another worker in its pool, "
                        "it can be asked for again"};
  return false;
}

/// A pool that gets smaller for the worker may be rolled back before it goes.
int drain(const change_options& options) {
  const auto client = options.admin.client();
  const auto before = seat_of_worker(get(*client, "/admin/status"), options.what);
  json_writer body;
  body.begin_object().member("worker", options.what).end_object();
  const auto begun =
      ask(*client, "/admin/drain-worker", body.take(), "cannot drain " + options.what);
  const bool resizes = begun.from != begun.members;
  progress shows;
  shows.show(begun);
  if (options.no_wait) {
    say_not_waited(begun);
    return exit_success;
  }
  wait_until(options, [&] {
    if (resizes) {
      const auto now = find_change(get(*client, "/admin/pools"), begun);
      const bool ended = has_ended(now, begun);
      shows.show(now);
      if (!ended) return false;
    }
    return !before || has_left(get(*client, "/admin/status"), *before, options.what);
  });
  progress::say("worker " + options.what + ": gone");
  return exit_success;
}

int pools(const admin_choice& admin, bool json) {
  const auto client = admin.client();
  const auto reply = admin_get(*client, "/admin/pools");
  if (reply.status != http_status::ok) throw failed(reply, "/admin/pools");
  auto text = json ? reply.body : pools_page(parse_answer(reply.body));
  if (!text.ends_with('\n')) text += '\n';
  std::fputs(text.c_str(), stdout);
  return exit_success;
}

/// The flags of both changes.
std::shared_ptr<change_options> add_change_flags(CLI::App& app) {
  auto options = std::make_shared<change_options>();
  add_admin_flags(app, options->admin);
  auto* no_wait = app.add_flag("--no-wait", options->no_wait,
                               "Return when the server has accepted it, not when it is done");
  app.add_option("--timeout", options->timeout_seconds,
                 "Seconds to wait until it is done; it goes on after that")
      ->type_name("SECONDS")
      ->capture_default_str()
      ->check(CLI::Range(0.0, wait_seconds_max))
      ->excludes(no_wait);
  return options;
}

} // namespace

run_function setup_pools(CLI::App& app) {
  struct flags {
    admin_choice admin;
    bool json = false;
  };
  auto options = std::make_shared<flags>();
  add_admin_flags(app, options->admin);
  app.add_flag("--json", options->json, "Write the server's JSON unchanged");
  return [options] { return pools(options->admin, options->json); };
}

run_function setup_scale(CLI::App& app) {
  auto options = add_change_flags(app);
  app.add_option(
         "size", options->what,
         "The pool and how many workers it shall have: model=N (replicas of the model), "
         "attention=N (shards of the KV cache), attention/CELL=N (of one cell) or prefill=N "
         "(workers for prompts)")
      ->type_name("POOL=N")
      ->required();
  app.add_option("--partition", options->partition,
                 "How an attention cell divides its KV from now on: by heads or by requests")
      ->type_name("heads|requests")
      ->check(CLI::IsMember({"heads", "requests"}));
  app.add_option("--kv-bytes", options->kv_bytes,
                 "KV cache of each member of an attention pool or cell from now on: 512MiB, 2GB")
      ->type_name("BYTES")
      ->transform(CLI::AsSizeValue(true))
      ->check(CLI::Range(kv_bytes_min, kv_bytes_max));
  return [options] { return scale(*options); };
}

run_function setup_drain(CLI::App& app) {
  auto options = add_change_flags(app);
  app.add_option("worker", options->what,
                 "The worker, by its name (attention-1) or its seat (attention/1) in 'lamella "
                 "status'. A spare takes its part; without one its pool gets smaller")
      ->type_name("WORKER")
      ->required();
  return [options] { return drain(*options); };
}

} // namespace lamella::cli
