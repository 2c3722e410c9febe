// Every message survives a serialiser: what is not registered or not inspected whole would be lost
// between processes without a word.
#include "actors/protocol/admission.hpp"
#include "actors/protocol/batches.hpp"
#include "actors/protocol/epochs.hpp"
#include "actors/protocol/iterations.hpp"
#include "actors/protocol/join.hpp"
#include "actors/protocol/kv.hpp"
#include "actors/protocol/parity.hpp"
#include "actors/protocol/pools.hpp"
#include "actors/protocol/prefills.hpp"
#include "actors/protocol/pulls.hpp"
#include "actors/protocol/status.hpp"
#include "actors/protocol/tokens.hpp"
#include "actors/protocol/traces.hpp"
#include "actors/protocol/watches.hpp"
#include "actors/protocol/work_reports.hpp"
#include "actors/protocol/workers.hpp"
#include "tests/actors/stand_ins.hpp"

#include <limits>

namespace lamella::actors::test {
namespace {

struct world : stage {
  template <class T> void check(const T& x) {
    const auto original = caf::make_message(x);
    const auto text = caf::to_string(original);
    CAPTURE(text);
    const auto bytes = bytes_of(original);
    caf::message back;
    caf::binary_deserializer source{system, bytes};
    const auto error = source(back);
    CHECK_MESSAGE(!error, system.render(error));
    REQUIRE(back.match_elements<T>());
    CHECK(caf::to_string(back) == text);
    CHECK(bytes_of(back) == bytes);
    // Not vacuous: another value has other bytes.
    if constexpr (!std::is_empty_v<T>) CHECK(bytes != bytes_of(caf::make_message(T{})));
  }

  std::vector<char> bytes_of(const caf::message& x) {
    std::vector<char> buffer;
    caf::binary_serializer sink{system, buffer};
    auto copy = x;
    const auto error = sink(copy);
    CHECK_MESSAGE(!error, system.render(error));
    return buffer;
  }
};

sampling some_sampling() {
  sampling x;
  x.seed = uint64_t{1} << 63 | 5;
  x.choice = 2;
  x.temperature = 0.7f;
  x.top_k = 40;
  x.top_p = 0.9f;
  x.min_p = 0.1f;
  x.presence_penalty = -1.5f;
  x.frequency_penalty = 0.25f;
  x.repetition_penalty = 1.1f;
  x.logprobs = 21;
  x.min_tokens = 3;
  x.end_tokens = {2, 0};
  x.bias = {{7, -100.f}, {9, 5.f}};
  return x;
}

sampled_token some_token() {
  sampled_token x;
  x.token = 99;
  x.logprob = -2.5f;
  x.finite = false;
  x.top = {{99, -0.5f}, {3, -7.25f}};
  return x;
}

iteration_launch some_launch() {
  iteration_launch x;
  x.stream = stream_id{65537};
  x.epoch = 3;
  x.iteration = uint64_t{1} << 40;
  x.attempt = 2;
  x.table_version = 17;
  x.changes = {{seat_change::kind::join, 4, 1, {{10, 20}, {50, 1}}},
               {seat_change::kind::leave, 2, 0, {}}};
  x.spans = {{4, 100, 7}, {5, 0, 1}};
  x.tokens = {1, 2, 3};
  x.selected = {2};
  x.samples = {{0, 9, 1, 5, 0.5f, 3, 0.8f, 0.1f, 4, 0, 1, 0, 77}};
  x.sample_seats = {4};
  x.edits = {{8, 1.5f, -0.25f}};
  x.masks = {{std::make_shared<const model::token_mask>(model::token_mask{{7, ~0u}})}};
  x.fences = {0, 7};
  return x;
}

} // namespace

TEST_CASE_FIXTURE(world, "Numbers of messages keep all their bits, whatever they are") {
  using limits = std::numeric_limits<float>;
  for (const float number : {limits::infinity(), -limits::infinity(), limits::quiet_NaN(), -0.0f,
                             limits::denorm_min(), -limits::max(), 1e-40f, 0.1f}) {
    CAPTURE(number);
    auto launch = some_launch();
    launch.edits = {{8, 1.0f, number}};
    launch.samples[0].temperature = launch.samples[0].min_p = number;
    check(launch);
    auto token = some_token();
    token.logprob = token.top[0].logprob = number;
    check(sampled{stream_id{2}, 7, {token}});
    prefill asked;
    asked.samplings = {some_sampling()};
    asked.samplings[0].bias = {{7, number}};
    check(asked);
    worker_peers peers;
    peers.log_dropped = 1;
    peers.busy = double{number};
    check(peers);
  }
}

TEST_CASE_FIXTURE(world,
                  "Messages between processes are the same after a trip through the serialiser") {
  const auto launch = some_launch();
  check(launch.spans[0]);
  check(launch);
  check(sampled_of{stream_id{2}, 7, 1});
  check(sampled{stream_id{2}, 7, {some_token()}});
  check(iteration_failed{stream_id{2}, 7, 1, true, "no frame came"});
  check(kv_reserve{
      {{seq(3, 1), 16, seq(3), 40, reserve_mode::resume, 39, {uint64_t{1} << 63, {4, 5}, true}}},
      5,
      true,
      7});
  check(kv_grant{{{seq(3), 1, {{5, 6}}, true, 5}}});
  check(kv_release{{seq(3), seq(4)}, 7, {{40, {1, 2}}, {}}});
  check(kv_filled{seq(3), 7, 40});
  check(kv_doubt{seq(3), 7});
  check(kv_freed{12});
  check(kv_trim{});
  check(kv_inventory_ask{2});
  check(kv_inventory{{{5, 6}, {20, 1}}});
  check(kv_usage{{10, 20}, {1, 2}, 3, 4, 5});
  check(admit{seq(3), 2, 100, true, false, {9, {4, 5}}});
  check(admitted{stream_id{1}, 2, {{seq(3), 1, {{5, 6}}}}});
  check(withdraw{seq(3)});
  check(retire{seq(3), true});
  prefill p;
  p.first = seq(3);
  p.tokens = {1, 2, 3};
  p.member = 1;
  p.runs = {{7, 3}};
  p.samplings = {some_sampling()};
  p.draws = {4};
  p.changes = {{{{8, 1.5f, -0.25f}}, nullptr}};
  p.cached = 2;
  p.rebuild = true;
  p.slack_ms = 77;
  p.scored = 3;
  check(p);
  check(kv_rebuilding{stream_id{65536}, true});
  check(prefilled{{some_token()}, 1'500, {some_token(), some_token()}});
  check(prefill_begun{seq(7)});
  check(prefill_load{stream_id{65'537}, 800});
  check(first_token{seq(7), 3, {}});
  check(worker_drain{"attention/1", true});
  check(pool_change{"attention", 1, 3, "under way", "workers"});
  check(kv_sweep{7, {seq(9), seq(3, 1), 40, 16, true, 2}});
  check(kv_pulled{1, seq(2), {{3, 4}}, true});
  check(kv_swept{{{5, 6}}, {{seq(4), 7}}, seq(3, 1), 46, 12});
  check(kv_protection{7, {{5, 6}}, true, 2});
  check(kv_check{{{5, 6}}});
  check(kv_checked{{1, 2, 3}});
  check(kv_pull{stream_id{65536}, 3, 9, {{5, 6}}, true});
  check(kv_offer{stream_id{65536}, 3, 9, 1, {{5, 6}}, 12});
  check(kv_moved{9, uint64_t{1} << 63, 4096});
  check(kv_pull_cancel{stream_id{65536}});
  check(prefill_cancel{seq(3)});
  check(token{seq(3), 5, some_token(), finish::length});
  check(preempted{seq(3), true, 7});
  check(sequence_failed{seq(3), "why", 7, true});
  check(batch_leave{seq(3), true});
  const peer_info peer{"attention/1", "shm", 12.5, 4096};
  const worker_info worker{"model-0", "model", "model/0", "live", "host",     3,
                           "machine", 4711,    {peer},    true,   "replica 0"};
  check(worker);
  system_status status;
  status.epoch = 4;
  status.workers = {worker};
  status.supervisors = {{"a", "none", {1, 2, 3}, {{"b", "c", 4, {5, 6, 7}}}, 8}};
  status.pools = {{"main", "heads", 3, 100, 40, 30, 2, 60, 41, 42}};
  status.pipeline = {true, 2};
  status.times = {{"launch", "far", 8, 0.5, 1.25, 6}};
  status.running = 5;
  status.waiting = 6;
  check(status);
  batch_join join;
  join.sequence = seq(3);
  join.client = spawn(stand_in_client(std::make_shared<client_book>()));
  join.member = 1;
  join.runs = {{7, 3}};
  join.position = 9;
  join.last = 11;
  join.generated = 2;
  join.max_tokens = 50;
  join.wanted = some_sampling();
  join.ignore_end = true;
  join.history_prompt = {1, 2};
  join.history_output = {3};
  check(join);
}

TEST_CASE_FIXTURE(world, "So are the messages between processes, handles of actors included") {
  check(join_ask{1, "model", "m0", "0.1", "machine", 7, 2, 100, 1000, std::string(32, 'n')});
  check(join_challenge{"cluster", std::string(32, '\0')});
  check(join_proof{std::string(32, 'n'), std::string(32, 'p')});
  worker_terms terms;
  terms.model_path = "/m.gguf";
  terms.model_digest = uint64_t{1} << 63;
  terms.version = "0.1";
  terms.kernels = "avx512";
  terms.shapes = "30 layers";
  terms.threads = 3;
  terms.wire = gpu::half_type::f32;
  terms.kv = gpu::half_type::f32;
  terms.layers = 30;
  terms.kv_heads = 3;
  terms.group = 4;
  terms.head_dim = 64;
  terms.scale = 0.125f;
  terms.pool = {{{{3, 1000}, {0, 2000}}}, 2000, 18, 19, 21, 24, 25, 26};
  terms.prefill_owns_kv = true;
  terms.ranks = 2;
  terms.decode_rank_bytes = 22;
  terms.prefill_rank_bytes = 23;
  terms.transport = "shm";
  terms.link_secret = std::string(32, '\1');
  terms.link_cluster = 17;
  terms.link_folder = "/tmp/x";
  terms.link_timeout_ms = 20;
  check(join_grant{std::string(32, 'p'), "attention", 2, 9, 4, terms});
  check(epoch_open{5,
                   {{stream_id{65536}, 2}},
                   {{"model/1", "a", 1, 5}, {"model/2", "b"}},
                   {{"attention/3", "c", 0x4003, 2}},
                   1,
                   2,
                   4,
                   terms.pool});
  check(epoch_close{5, true});
  check(watch_order{3, true, {{"attention/1", "a", 1, 5}}});
  check(watch_report{
      true, 3, {{"attention/1", 5, true, 0}, {"attention/2", 6, false, 400}}, {{"model/1", 2}}});
  check(worker_leave{"go"});
  check(worker_stopped{71});
  check(worker_injury{"pause", 300});
  const auto shard = spawn([](attention_shard_actor::pointer) {
    return attention_shard_actor::behavior_type{[](const iteration_launch&) {},
                                                [](kv_trim) { return true; },
                                                [](const kv_pull&) { return kv_moved{}; },
                                                [](kv_pull_cancel) {},
                                                [](const kv_offer&) { return kv_moved{}; },
                                                [](const kv_check&) { return kv_checked{}; }};
  });
  const auto source = spawn([](kv_source_actor::pointer) {
    return kv_source_actor::behavior_type{[](const kv_offer&) { return kv_moved{}; },
                                          [](kv_pull_cancel) {}};
  });
  check(epoch_ready{model_replica_actor{}, shard, true, source, 3, {{}, shard, source}});
  check(worker_peers{{{"model/0", "tcp", 0.5, 1}},
                     {1, 2, 3},
                     4,
                     {{{5, 6}, 7}, {}},
                     {8, 9},
                     10,
                     0.5,
                     {11, 12, 13},
                     {14, 15, 16}});
  const auto worker = spawn([](worker_actor::pointer) {
    return worker_actor::behavior_type{[](const epoch_open&) { return epoch_ready{}; },
                                       [](const epoch_close&) {},
                                       [](const worker_injury&) {},
                                       [](wake_atom) {},
                                       [](const worker_leave&) {},
                                       [](status_atom) { return worker_peers{}; }};
  });
  check(trace_workers{{{"model/0", "model-0", "host", "replica 0", 12, worker}}});
  check(trace_workers_ask{});
  check(trace_begin{1, 500});
  check(trace_begun{-7, "boot"});
  check(trace_ask{1, 4096, 10});
  check(trace_page{
      {8, "boot"}, 9, {"slice"}, {{3, "host/model/0", "0", 2}}, {{10, 20, 5, 6, 7, 8, 0, 0, 1}}});
  check(worker_facts{worker, "0.1", "avx512", "30 layers", 5, "address", "host"});
}

TEST_CASE_FIXTURE(stage, "Errors render in words, with their context") {
  CHECK(system.render(caf::make_error(ec::kv_exhausted)).find("slots") != std::string::npos);
  CHECK(system.render(caf::make_error(ec::never_fits, "17 wanted")).find("17 wanted")
        != std::string::npos);
  for (uint8_t code = 1; code <= static_cast<uint8_t>(ec::mask_refused); ++code)
    CHECK(std::string{describe(static_cast<ec>(code))} != "unknown error");
}

} // namespace lamella::actors::test
