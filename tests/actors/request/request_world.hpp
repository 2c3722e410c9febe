/// A request and a service whose every part waits for the test.
#pragma once

#include "actors/protocol/admission.hpp"
#include "actors/protocol/batches.hpp"
#include "actors/protocol/iterations.hpp"
#include "actors/protocol/prefills.hpp"
#include "actors/protocol/tokens.hpp"
#include "actors/request/chat/chat_input.hpp"
#include "tests/actors/gateway/fake_exchange.hpp"
#include "tests/actors/stand_ins.hpp"

namespace lamella::actors::test {

using namespace std::chrono_literals;

struct prefill_book {
  std::vector<prefill> asked;
  std::deque<owed<prefilled>> promises;
  std::vector<sequence_id> cancelled;
};

/// Jobs that wait until the test runs them.
struct aside_book {
  std::deque<aside_job> jobs;
};

struct batch_book {
  std::vector<batch_join> joined;
  std::vector<sequence_id> left;
};

/// A service whose every part waits for the test.
struct pipeline_books {
  std::shared_ptr<scheduler_book> scheduler = std::make_shared<scheduler_book>();
  std::shared_ptr<allocator_book> kv = std::make_shared<allocator_book>();
  std::shared_ptr<prefill_book> prefills = std::make_shared<prefill_book>();
  std::shared_ptr<batch_book> batches = std::make_shared<batch_book>();
};

struct request_world : stage {
  pipeline_books old_books, books; ///< `books` are those of the newest pipeline
  std::shared_ptr<fake_exchange> exchange;
  request_note_ptr note = std::make_shared<request_note>();
  request_actor request_;
  bool over = false;
  uint64_t epoch = 0;
  std::string lost_role; ///< of the next pipeline
  environment outside;
  size_t piece_bytes;
  std::shared_ptr<net::metrics> metrics = std::make_shared<net::metrics>(net::metrics::settings{});
  std::shared_ptr<recovery_watch> pauses = std::make_shared<recovery_watch>(2s);
  std::shared_ptr<aside_book> held; ///< null: what runs aside is run as it comes
  std::shared_ptr<request_traces> traces;
  net::api_route route;

  explicit request_world(const std::string& more = {}, uint32_t max_tokens = 6)
      : request_world{completion_body(10, max_tokens, 5, more), environment{}} {}

  /// `pieces`: bytes that a stream gives the socket at once. `holds` keeps what is to run aside.
  /// `spans`: null: none are made. `more`: fields of the request. `by`: the route it came by.
  request_world(const std::string& body, environment from, size_t pieces = 65'536,
                std::shared_ptr<aside_book> holds = nullptr,
                std::shared_ptr<request_traces> spans = nullptr, const net::http_headers& more = {},
                net::api_route by = net::api_route::completions)
      : outside{std::move(from)},
        piece_bytes{pieces}, held{std::move(holds)}, traces{std::move(spans)}, route{by} {
    exchange = std::make_shared<fake_exchange>(body);
    for (const auto& [name, value] : more) exchange->add_header(name, value);
    request_ = spawn(request, service(), exchange_ptr{exchange}, request_id{1}, route, 0, note);
    request_->attach_functor([this](const caf::error&) { over = true; });
    caf::anon_send(request_, begin_atom_v);
    settle();
  }

  ~request_world() { end_all(); }

  actors::service_ptr service() {
    auto s = std::make_shared<actors::service>(tiny_service());
    if (route != net::api_route::completions)
      use_chat_template(*s, tests::tiny_model_options{}.chat_template);
    s->epoch = ++epoch;
    s->world = outside;
    s->piece_bytes = piece_bytes;
    s->metrics = metrics;
    s->caches_prefixes = true;
    s->pauses = pauses;
    s->traces = traces;
    s->lost_role = lost_role;
    s->aside = !held ? spawn(aside, aside_config{1, false})
                     : spawn([book = held](aside_actor::pointer) -> aside_actor::behavior_type {
                         return {[book](const aside_job& job) { book->jobs.push_back(job); },
                                 [](const aside_idle&) {}};
                       });
    s->scheduler = spawn(stand_in_scheduler(books.scheduler));
    s->allocator = spawn(stand_in_allocator(books.kv));
    s->prefill_workers.push_back(spawn([book = books.prefills](prefill_worker_actor::pointer self)
                                           -> prefill_worker_actor::behavior_type {
      return {
          [book, self](const prefill& x) -> caf::result<prefilled> {
            book->asked.push_back(x);
            auto promise = self->make_response_promise<prefilled>();
            book->promises.push_back({promise, self});
            return promise;
          },
          [book](const prefill_cancel& x) { book->cancelled.push_back(x.first); },
          [](const hand_over&) { return true; },
          [](const iteration_failed&) {},
      };
    }));
    s->batches.push_back(
        spawn([book = books.batches](batch_actor::pointer) -> batch_actor::behavior_type {
          return {
              [book](const batch_join& x) { book->joined.push_back(x); },
              [book](const batch_leave& x) { book->left.push_back(x.sequence); },
              [](const iteration_failed&) {},
              [](const kv_rebuilding&) {},
              [](const hand_over&) { return true; },
              [](wake_atom) {},
              [](status_atom) -> caf::result<uint32_t> { return uint32_t{0}; },
          };
        }));
    settle();
    return s;
  }

  /// The pipeline is replaced by a new one.
  void rebuild(const std::function<void(actors::service&)>& change = {}) {
    old_books = books;
    books = {};
    auto s = std::make_shared<actors::service>(*service());
    if (change) change(*s);
    caf::anon_send(request_, actors::service_ptr{std::move(s)});
    settle();
  }
  void admit_all(uint32_t choices = 1) {
    while (!books.scheduler->promises.empty()) {
      const auto x =
          books.scheduler->asked[books.scheduler->asked.size() - books.scheduler->promises.size()];
      admitted place;
      for (uint32_t k = 0; k < choices; ++k)
        place.holdings.push_back(
            {seq(1, scheduler::index_of(x.first) + k), 0, {{k * 100, x.prompt_tokens + 16}}});
      books.scheduler->promises.front().deliver(place);
      books.scheduler->promises.pop_front();
      settle();
    }
  }
  void prefill_all() {
    while (!books.prefills->promises.empty()) {
      const auto x =
          books.prefills->asked[books.prefills->asked.size() - books.prefills->promises.size()];
      prefilled result;
      for (size_t k = 0; k < x.samplings.size(); ++k)
        result.tokens.push_back(drawn(x.draws[k], x.samplings[k].choice));
      books.prefills->promises.front().deliver(result);
      books.prefills->promises.pop_front();
      settle();
    }
  }
  static sampled_token drawn(uint32_t index, uint32_t choice = 0) {
    sampled_token t;
    t.token = token_for(5, choice, index);
    t.logprob = -1;
    return t;
  }
  /// Runs the oldest job that waits; which lane it was of.
  aside_lane run_job() {
    const auto job = held->jobs.front();
    held->jobs.pop_front();
    job.run();
    settle();
    return job.lane;
  }
  template <class Message> void tell(Message x) {
    caf::anon_send(request_, std::move(x));
    settle();
  }
  void say(uint32_t index, finish reason = finish::none, uint32_t choice = 0) {
    tell(token{seq(1, choice), index, drawn(index, choice), reason, epoch});
  }
  std::string text(uint32_t count, uint32_t choice = 0) {
    std::string result;
    for (uint32_t i = 0; i < count; ++i) result += static_cast<char>(token_for(5, choice, i) - 3);
    return result;
  }
};

} // namespace lamella::actors::test
