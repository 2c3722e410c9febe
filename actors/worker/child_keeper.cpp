#include "actors/worker/child_keeper.hpp"

#include "actors/machine/oom_kills.hpp"
#include "actors/protocol/supervisors.hpp"
#include "actors/protocol/workers.hpp"
#include "actors/shared/events.hpp"
#include "actors/shared/exceptions.hpp"
#include "base/errno_text.hpp"

#include <spdlog/spdlog.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <fstream>

#include <fcntl.h>
#include <poll.h>
#include <spawn.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

extern char** environ;

namespace lamella::actors {

namespace {

using keeper_ptr = child_keeper_actor::stateful_pointer<child_keeper_state>;
using child = child_keeper_state::child;

/// Where a child finds the secret.
constexpr int secret_descriptor = 3;

/// The secret as a file without a name, readable by this user only. Negative on failure.
int secret_file(const std::string& text) {
  const int fd = memfd_create("lamella-secret", MFD_CLOEXEC);
  if (fd < 0) return fd;
  const bool good = fchmod(fd, 0400) == 0
                    && write(fd, text.data(), text.size()) == static_cast<ssize_t>(text.size());
  if (good) return fd;
  close(fd);
  return -1;
}

/// Starts the program with nothing of ours but the standard streams and the secret. 0 or errno.
int spawn_process(const child_command& what, int secret, pid_t& pid) {
  posix_spawn_file_actions_t files;
  posix_spawnattr_t attributes;
  posix_spawn_file_actions_init(&files);
  posix_spawnattr_init(&attributes);
  posix_spawn_file_actions_addopen(&files, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_adddup2(&files, secret, secret_descriptor);
  posix_spawn_file_actions_addclosefrom_np(&files, secret_descriptor + 1);
  // Our signal mask is not theirs, and a Ctrl-C at the terminal is for us alone.
  sigset_t none, defaults;
  sigemptyset(&none);
  sigemptyset(&defaults);
  sigaddset(&defaults, SIGPIPE);
  posix_spawnattr_setsigmask(&attributes, &none);
  posix_spawnattr_setsigdefault(&attributes, &defaults);
  posix_spawnattr_setpgroup(&attributes, 0);
  posix_spawnattr_setflags(&attributes,
                           POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETPGROUP);
  std::vector<char*> words;
  for (const auto& word : what.words) words.push_back(const_cast<char*>(word.c_str()));
  words.push_back(nullptr);
  const int error = posix_spawn(&pid, words[0], &files, &attributes, words.data(), environ);
  posix_spawnattr_destroy(&attributes);
  posix_spawn_file_actions_destroy(&files);
  return error;
}

/// Did it end by a fault of its own? The words are for the log.
bool is_own_fault(int status, std::string& how) {
  if (WIFEXITED(status)) {
    how = "exit code " + std::to_string(WEXITSTATUS(status));
    return WEXITSTATUS(status) != 0;
  }
  const int signal = WTERMSIG(status);
  how = "signal " + std::to_string(signal);
  return signal != SIGKILL && signal != SIGTERM && signal != SIGINT && signal != SIGHUP;
}

/// A process that was killed took more memory than there is, and by that count no other has.
bool was_short_of_memory(keeper_ptr self, int status, std::string& how) {
  auto& known = self->state.oom_kills;
  if (!known || !WIFSIGNALED(status) || WTERMSIG(status) != SIGKILL) return false;
  if (oom_kills().value_or(*known) <= *known) return false;
  ++*known;
  how += ", out of memory";
  return true;
}

/// When it starts next, and who must know.
void put_off(keeper_ptr self, child& x, pid_t pid, const std::string& how,
             caf::actor_clock::time_point now) {
  const auto delay = x.restarts.next_delay(scheduler::restart_policy::jitter_of(x.starts));
  x.start_at = now + delay;
  tell(event_kind::worker_exited,
       {{"worker", x.what.name}, {"pid", pid}, {"how", how}, {"again_in_ms", delay.count()}});
  if (!x.restarts.failing()) return;
  tell(event_kind::worker_failing,
       {{"worker", x.what.name}, {"faults", x.restarts.faults()}, {"how", how}});
  if (self->state.config.on_failing)
    self->state.config.on_failing({std::string{scheduler::to_string(x.what.where.role)},
                                   x.what.where.index, how, x.restarts.faults()});
}

void start(keeper_ptr self, child& x, caf::actor_clock::time_point now) {
  const int secret = secret_file(self->state.config.secret_text);
  const int error = secret < 0 ? errno : spawn_process(x.what, secret, x.pid);
  if (secret >= 0) close(secret);
  ++x.starts;
  if (error == 0) {
    spdlog::info("worker process started worker={} pid={}", x.what.name, x.pid);
    return;
  }
  x.pid = 0;
  x.restarts.on_fault(now);
  put_off(self, x, 0, "cannot be started: " + errno_text(error), now);
}

void forgive(keeper_ptr self) {
  for (auto& x : self->state.children) x.restarts.forgive();
}

void on_end(keeper_ptr self, child& x, int status, caf::actor_clock::time_point now) {
  std::string how;
  const bool own_fault = is_own_fault(status, how) || was_short_of_memory(self, status, how);
  const auto pid = std::exchange(x.pid, 0);
  x.lost_at.reset();
  x.stopped_at.reset();
  auto& suspects = self->state.config.suspects;
  const auto budget = suspects ? suspects->ended(static_cast<uint32_t>(pid), own_fault)
                               : suspect_board::budget::counts;
  if (budget == suspect_board::budget::explained) forgive(self);
  if (own_fault && budget == suspect_board::budget::counts)
    x.restarts.on_fault(now);
  else
    x.restarts.on_loss(now);
  put_off(self, x, pid, how, now);
}

/// Is the process stopped, by a signal or a debugger's?
bool is_stopped(pid_t pid) {
  std::ifstream file{"/proc/" + std::to_string(pid) + "/stat"};
  std::string line;
  std::getline(file, line);
  // "PID (NAME) STATE ...", and a name may hold anything.
  const auto name_end = line.rfind(')');
  return name_end != std::string::npos && name_end + 2 < line.size() && line[name_end + 2] == 'T';
}

/// Whether a child whose worker is lost has not rejoined in time. A new process in its place would
/// have to wait for processors, too, and would have to load everything again.
bool is_hung(const child_keeper_config& config, const child& x, caf::actor_clock::time_point now) {
  if (!x.lost_at || now - *x.lost_at <= config.silence) return false;
  if (now - *x.lost_at > config.starved || !x.waited_then) return true;
  const auto waited = config.waited_of(static_cast<uint32_t>(x.pid));
  return !waited || *waited - *x.waited_then < (now - *x.lost_at) / 5;
}

/// Kills a child that does not run, however it came to that.
void look_at_life(keeper_ptr self, child& x, caf::actor_clock::time_point now) {
  const auto& config = self->state.config;
  if (!is_stopped(x.pid))
    x.stopped_at.reset();
  else if (!x.stopped_at)
    x.stopped_at = now;
  const bool stopped = x.stopped_at && now - *x.stopped_at >= config.stopped;
  const bool silent = is_hung(config, x, now);
  if (!stopped && !silent) return;
  spdlog::warn("worker process {} worker={} pid={} killed", stopped ? "stopped" : "hung",
               x.what.name, x.pid);
  if (stopped && config.on_stopped) config.on_stopped(static_cast<uint32_t>(x.pid));
  kill(x.pid, SIGKILL);
  x.lost_at.reset();
  x.stopped_at.reset();
}

/// Waits for processes whose seats were taken away.
void reap_leavers(keeper_ptr self, caf::actor_clock::time_point now) {
  std::erase_if(self->state.leaving, [&](const auto& x) {
    if (waitpid(x.pid, nullptr, WNOHANG) == x.pid) {
      spdlog::info("worker process ended worker={} pid={}", x.name, x.pid);
      return true;
    }
    if (now >= x.killed_at) kill(x.pid, SIGKILL);
    return false;
  });
}

void look(keeper_ptr self) {
  const auto now = self->clock().now();
  if (const auto& suspects = self->state.config.suspects; suspects && suspects->take_forgiveness())
    forgive(self);
  reap_leavers(self, now);
  for (auto& x : self->state.children) {
    int status = 0;
    if (x.pid != 0) look_at_life(self, x, now);
    if (x.pid != 0 && waitpid(x.pid, &status, WNOHANG) == x.pid) on_end(self, x, status, now);
    if (!self->state.closing && x.pid == 0 && x.start_at <= now) start(self, x, now);
  }
}

/// Takes a new list: starts what is new, lets go what is not in it.
void on_children(keeper_ptr self, const std::vector<child_command>& list) {
  auto& st = self->state;
  const auto now = self->clock().now();
  const auto is_of = [](const child& x, const child_command& y) { return x.what.where == y.where; };
  for (const auto& what : list)
    if (std::ranges::none_of(st.children, [&](const auto& x) { return is_of(x, what); })) {
      child x;
      x.what = what;
      st.children.push_back(std::move(x));
    }
  std::erase_if(st.children, [&](const auto& x) {
    if (std::ranges::any_of(list, [&](const auto& what) { return is_of(x, what); })) return false;
    if (x.pid != 0) st.leaving.push_back({x.what.name, x.pid, now + st.config.grace});
    return true;
  });
  look(self);
}

void on_worker(keeper_ptr self, uint32_t pid, worker_news news) {
  auto& st = self->state;
  const bool lost = news == worker_news::lost;
  const auto ours = std::ranges::find(st.children, static_cast<pid_t>(pid), &child::pid);
  if (ours != st.children.end() && lost) {
    ours->lost_at = self->clock().now();
    ours->waited_then = st.config.waited_of(pid);
  } else if (ours != st.children.end()) {
    ours->lost_at.reset();
    if (news == worker_news::serves) ours->restarts.on_serving(self->clock().now());
  }
  // How a process ended that is none of ours, or has not ended, nobody will ever tell.
  if (st.config.suspects && (ours == st.children.end() || !lost))
    st.config.suspects->ended(pid, false);
  if (lost) look(self); // whoever was in flight there waits for it
}

/// Ends all of them; returns how many did not go when they were asked to.
uint32_t close_all(keeper_ptr self) {
  auto& st = self->state;
  st.closing = true;
  for (const auto& x : std::exchange(st.leaving, {})) { // as children, so that none is left behind
    child gone;
    gone.what.name = x.name;
    gone.pid = x.pid;
    st.children.push_back(std::move(gone));
  }
  for (const auto& x : st.children)
    if (x.pid != 0) kill(x.pid, SIGTERM);
  const auto until = std::chrono::steady_clock::now() + st.config.grace;
  const auto reap = [&] {
    bool all = true;
    for (auto& x : st.children)
      if (x.pid != 0 && waitpid(x.pid, nullptr, WNOHANG) == x.pid)
        x.pid = 0;
      else
        all = all && x.pid == 0;
    return all;
  };
  while (!reap() && std::chrono::steady_clock::now() < until) poll(nullptr, 0, 5);
  uint32_t killed = 0;
  for (auto& x : st.children) {
    if (x.pid == 0) continue;
    spdlog::warn("worker process killed worker={} pid={}", x.what.name, x.pid);
    kill(x.pid, SIGKILL);
    waitpid(x.pid, nullptr, 0);
    x.pid = 0;
    ++killed;
  }
  return killed;
}

supervisor_status status_of(keeper_ptr self) {
  supervisor_status x{"child_keeper", "one_for_one", {}, {}, 0};
  for (const auto& each : self->state.children) {
    if (x.children.size() == children_told_max) {
      ++x.more;
      continue;
    }
    const auto spent = each.restarts.spent(self->clock().now());
    x.children.push_back(
        {each.what.name,
         {},
         each.pid == 0 ? 0u : 1u,
         {spent.used, spent.allowed, static_cast<uint32_t>(spent.window.count())}});
  }
  return x;
}

} // namespace

child_keeper_actor::behavior_type
child_keeper(child_keeper_actor::stateful_pointer<child_keeper_state> self,
             child_keeper_config config) {
  end_on_exceptions(self);
  self->state.config = std::move(config);
  for (auto& what : self->state.config.children) {
    child x;
    x.what = what;
    self->state.children.push_back(std::move(x));
  }
  self->set_exit_handler([self](const caf::exit_msg& x) {
    close_all(self);
    self->quit(x.reason);
  });
  self->state.oom_kills = oom_kills();
  self->send(self, caf::tick_atom_v);
  return {
      [self](caf::tick_atom) {
        look(self);
        if (!self->state.closing)
          self->delayed_send(self, self->state.config.poll_interval, caf::tick_atom_v);
      },
      [self](uint32_t pid, worker_news news) { on_worker(self, pid, news); },
      [self](const children_ptr& list) { on_children(self, *list); },
      [self](caf::close_atom) -> caf::result<uint32_t> { return close_all(self); },
      [self](status_atom) { return status_of(self); },
  };
}

child_keeper_actor start_child_keeper(caf::actor_system& system, child_keeper_config config) {
  return system.spawn<caf::detached>(child_keeper, std::move(config));
}

} // namespace lamella::actors
