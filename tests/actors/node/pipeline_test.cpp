// The whole pipeline, kernels included, on virtual time and stepped devices; and its handles
// without HTTP.
#include "actors/decode/global_scheduler.hpp"
#include "actors/device/attention_shard.hpp"
#include "actors/device/gpu_executor.hpp"
#include "actors/device/model_replica.hpp"
#include "actors/device/prefill_seat.hpp"
#include "actors/kv/kv_allocator.hpp"
#include "actors/lane/lane.hpp"
#include "actors/protocol/admission.hpp"
#include "actors/protocol/batches.hpp"
#include "actors/protocol/kv.hpp"
#include "actors/protocol/prefills.hpp"
#include "actors/protocol/tokens.hpp"
#include "tests/actors/device/stepped_device.hpp"
#include "tests/actors/gateway/fake_exchange.hpp"
#include "tests/actors/gateway/served.hpp"
#include "tests/actors/stage.hpp"

namespace lamella::actors::test {
namespace {

/// Every actor between a request and the devices, wired as actors/node/pipeline.cpp does it.
struct stepped_pipeline : stage {
  stepped_engine engine;
  std::unique_ptr<gpu::device> any_device = engine.make_device("any");
  model::loaded_model model;
  std::shared_ptr<service> server = std::make_shared<service>(tiny_service());
  uint64_t messages = 0;

  /// `serialize_below`: the prefill worker has KV of its own, and pulls shorter prompts when done.
  stepped_pipeline(uint32_t layers, uint32_t shards,
                   std::optional<uint32_t> serialize_below = std::nullopt) {
    tests::tiny_model_options options;
    options.layers = layers;
    model = model::load_model(tiny_model(options));
    const auto& spec = model.program->spec;
    auto loader = engine.make_device("loader");
    auto weights = std::make_shared<gpu::packed_weights>(
        *model.program,
        [&](const model::weight_use& w) -> const model::tensor_view& { return model.tensor(w); },
        *loader, [](uint64_t, uint64_t) {});
    auto links = std::make_shared<net::fabric>(
        [&spec](uint32_t) {
          return std::max<size_t>(size_t{64} * spec.heads * 2 * spec.head_dim * 4,
                                  scheduler::pull_piece_bytes);
        },
        [this](uint32_t) -> gpu::device& { return *any_device; },
        [this](uint32_t) -> gpu::device& { return *any_device; });
    iteration_target target;
    kv_allocator_config k;
    const auto own_kv = serialize_below.has_value();
    for (uint32_t i = 0; i < shards; ++i) {
      shard_config c;
      c.device = engine.make_device("attention");
      c.seat = i;
      c.group = spec.group();
      c.scale = spec.attention_scale();
      c.cache = std::make_shared<gpu::kv_cache>(*c.device, layers, 512, spec.kv_heads / shards,
                                                spec.head_dim, gpu::half_type::f16);
      c.links = [links](const net::link_key& key) { return links->shard_end(key); };
      c.replicas_of = [own_kv](stream_id id) {
        return std::vector{own_kv && id != stream_id{0} ? 1u : 0u};
      };
      auto runs = spawn(gpu_executor, c.device, failed_work::ends_executor);
      target.shards.push_back(spawn(attention_shard, std::move(c), runs));
    }
    replica_config r;
    r.layout.cells = {{shards, 512}};
    r.device = engine.make_device("model");
    r.program = model.program;
    r.weights = weights;
    r.links = [links](const net::link_key& key) { return links->replica_end(key); };
    std::vector<stream_id> streams{stream_id{0}};
    if (!own_kv) streams.push_back(stream_id{scheduler::prefill_streams});
    make_ready(r, target.epoch, streams);
    auto runs = spawn(gpu_executor, r.device, failed_work::ends_executor);
    target.replicas = {spawn(model_replica, std::move(r), runs)};
    k.tables.list = {{{"attention-0"}, 512}};
    server->allocator = target.allocator = spawn(kv_allocator, std::move(k));
    caf::anon_send(target.allocator, kv_adopt{target.epoch, target.shards, {}});
    global_scheduler_config g;
    g.window_slots = server->window_slots;
    g.epoch = target.epoch;
    g.slots = 512;
    g.spare_slots = 512 / 20;
    server->aside = spawn(aside, aside_config{1, false});
    server->scheduler = spawn(global_scheduler, std::move(g), server->allocator);
    target.stream = stream_id{scheduler::prefill_streams};
    lane_config p{target};
    p.prompts.emplace().chunk_tokens = 16;
    if (own_kv) give_own_kv(p, shards, *serialize_below, weights, links);
    server->prefill_workers = {spawn(lane, std::move(p))};
    target.stream = stream_id{0};
    lane_config b{target, server->scheduler};
    b.tokens.emplace().batch.growth.window = server->window_slots;
    server->batches = {spawn(lane, std::move(b))};
    play();
  }
  ~stepped_pipeline() { end_all(); } // executors end before their devices do

  void give_own_kv(lane_config& to, uint32_t shards, uint32_t serialize_below,
                   std::shared_ptr<gpu::packed_weights> weights,
                   std::shared_ptr<net::fabric> links) {
    prefill_seat_config c;
    c.seat = 1;
    c.epoch = to.target.epoch;
    c.streams = {to.target.stream};
    c.layout.cells = {{shards, 512}};
    c.slots = 128;
    c.frame_bytes = 64 << 10;
    c.compute = engine.make_device("prefill");
    c.memory = engine.make_device("prefill-kv");
    c.program = model.program;
    c.weights = std::move(weights);
    c.links = [links](const net::link_key& key) { return links->replica_end(key); };
    caf::scoped_actor self{system};
    const auto seat = make_prefill_seat(self.ptr(), c);
    for (const auto& x : {seat.compute, seat.memory})
      owned.push_back(caf::actor_cast<caf::strong_actor_ptr>(x)); // the others are linked to them
    to.prompts->own =
        prefill_own_kv{seat.parts.source, to.target.shards, c.layout, c.slots, serialize_below};
    to.target.replicas = {seat.parts.replica};
    to.target.shards = {seat.parts.shard};
  }

  /// Delivers and steps until nothing can happen any more.
  void play() {
    do {
      for (; sched.has_job(); ++messages) sched.run_once();
    } while (engine.step());
  }

  std::shared_ptr<fake_exchange> begin(const std::string& body, uint64_t id) {
    auto exchange = std::make_shared<fake_exchange>(body);
    auto handle = spawn(request, service_ptr{server}, exchange_ptr{exchange}, request_id{id},
                        net::api_route::completions, 0, request_note_ptr{});
    caf::anon_send(handle, begin_atom_v);
    return exchange;
  }
};

/// Messages of all actors for one request, from its arrival to its answer.
uint64_t messages_for(uint32_t layers, uint32_t shards, uint32_t tokens,
                      std::optional<uint32_t> serialize_below = std::nullopt) {
  stepped_pipeline p{layers, shards, serialize_below};
  p.messages = 0;
  const auto steps = p.engine.steps;
  const auto exchange = p.begin(completion_body(20, tokens, 1, ",\"ignore_eos\":true"), 1);
  p.play();
  REQUIRE(exchange->status == 200);
  CHECK(p.engine.steps - steps > tokens * layers); // the devices did work layer by layer
  return p.messages;
}

} // namespace

TEST_CASE("L-M08 the number of messages does not depend on the number of layers") {
  const auto two = messages_for(2, 3, 30);
  CHECK(messages_for(6, 3, 30) == two);
  // Per iteration: a launch to each, one to each executor, a mark and an answer each, the question
  // for the tokens with its answer, and the token. Nothing else grows with the answer's length.
  const auto longer = messages_for(2, 3, 60);
  CHECK(longer - two <= 30 * (4 * 4 + 3 + 1));
  CHECK(messages_for(2, 1, 30) < two);
}

TEST_CASE("L-M08 L-M27 neither do those of a pull, serialized or layer by layer") {
  for (const uint32_t serialize_below : {0u, 1000u}) {
    CAPTURE(serialize_below);
    const auto two = messages_for(2, 3, 30, serialize_below);
    CHECK(messages_for(6, 3, 30, serialize_below) == two);
    CHECK(two > messages_for(2, 3, 30));
  }
}

// A device may give memory only when it is idle, and a shard's stream may wait for the replica
// whose launch asks for it.
TEST_CASE("no launch asks a device for memory: what streams need is made before") {
  for (const auto serialize_below : {std::optional<uint32_t>{}, {0u}, {1000u}}) {
    stepped_pipeline p{2, 3, serialize_below};
    const auto before = p.engine.memories;
    const auto exchange = p.begin(completion_body(20, 9, 1, ",\"ignore_eos\":true"), 1);
    p.play();
    REQUIRE(exchange->status == 200);
    CHECK(p.engine.memories == before);
  }
}

TEST_CASE("L-M27 S-M15 on virtual time, pulled prompts give the bits of others") {
  std::vector<std::string> answers[3];
  const std::optional<uint32_t> modes[] = {std::nullopt, 0, 1000};
  for (size_t mode = 0; mode < 3; ++mode) {
    stepped_pipeline p{3, 3, modes[mode]};
    std::vector<std::shared_ptr<fake_exchange>> all;
    for (uint32_t i = 1; i <= 6; ++i)
      all.push_back(
          p.begin(completion_body(9 * i, 12, i, R"(,"ignore_eos":true,"logprobs":3,"n":2)"), i));
    p.play();
    for (const auto& x : all) {
      REQUIRE(x->status == 200);
      answers[mode].push_back(x->body.substr(x->body.find("\"choices\"")));
    }
  }
  CHECK(answers[1] == answers[0]);
  CHECK(answers[2] == answers[0]);
}

TEST_CASE("L-M23 on virtual time, three shards give the bits of one") {
  std::vector<std::string> answers[2];
  for (const uint32_t shards : {1u, 3u}) {
    stepped_pipeline p{3, shards};
    std::vector<std::shared_ptr<fake_exchange>> all;
    for (uint32_t i = 1; i <= 4; ++i)
      all.push_back(
          p.begin(completion_body(5 * i, 12, i, R"(,"ignore_eos":true,"logprobs":3,"n":2)"), i));
    p.play();
    for (const auto& x : all) {
      REQUIRE(x->status == 200);
      answers[shards / 3].push_back(x->body.substr(x->body.find("\"choices\"")));
    }
  }
  CHECK(answers[0] == answers[1]);
}

namespace {

/// Runs one sequence on a node's handles, with the choice number it is told.
std::vector<token_id> generate(actors::node& n, request_id id, const std::vector<token_id>& prompt,
                               uint64_t seed, uint32_t choice, uint32_t count) {
  const auto server = n.server();
  caf::scoped_actor self{n.system()};
  const auto failed = [&](caf::error& e) { FAIL(n.system().render(e)); };
  const auto sequence = scheduler::sequence_of(id, 0);
  admitted place;
  self->request(server->scheduler, deadline,
                admit{sequence, 1, static_cast<uint32_t>(prompt.size()), false})
      .receive([&](admitted& x) { place = std::move(x); }, failed);
  prefill x;
  x.first = sequence;
  x.tokens = prompt;
  x.member = place.holdings.at(0).member;
  x.runs = place.holdings.at(0).runs;
  x.samplings.resize(1);
  x.samplings[0].seed = seed;
  x.samplings[0].choice = choice;
  x.draws = {0};
  x.changes.resize(1);
  std::vector<token_id> result;
  self->request(server->prefill_workers.at(0), deadline, x)
      .receive([&](prefilled& y) { result.push_back(y.tokens.at(0).token); }, failed);
  batch_join join;
  join.sequence = sequence;
  join.client = caf::actor_cast<decode_client_actor>(self);
  join.member = x.member;
  join.runs = x.runs;
  join.position = static_cast<uint32_t>(prompt.size());
  join.last = result.front();
  join.max_tokens = count;
  join.wanted = x.samplings[0];
  join.ignore_end = true;
  self->send(server->batches.at(static_cast<uint32_t>(place.batch)), join);
  while (result.size() < count)
    self->receive([&](const token& t) { result.push_back(t.value.token); },
                  caf::after(deadline) >> [] { FAIL("no token came"); });
  return result;
}

} // namespace

TEST_CASE("V-M12 n choices equal their own single runs and store their prompt once") {
  served s;
  constexpr uint32_t prompt_tokens = 300, count = 40;
  std::vector<token_id> prompt;
  tests::splitmix random{9};
  for (uint32_t i = 0; i < prompt_tokens; ++i)
    prompt.push_back(static_cast<token_id>(3 + random.below(256)));
  std::string list;
  for (auto t : prompt) list += (list.empty() ? "" : ",") + std::to_string(t);
  const auto x =
      s.post("/v1/completions", R"({"model":"tiny","prompt":[)" + list
                                    + R"(],"n":3,"seed":5,"max_tokens":40,)"
                                      R"("ignore_eos":true,"skip_special_tokens":false})");
  REQUIRE_MESSAGE(x.status == 200, x.body);
  for (uint32_t k = 0; k < 3; ++k) {
    CAPTURE(k);
    const auto single = generate(s.node(), request_id{(1u << 20) + k}, prompt, 5, k, count);
    model::detokenizer words{*s.node().server()->text, model::detokenizer::specials::shown};
    std::string text;
    for (auto t : single) text += words.push(t);
    text += words.finish();
    CHECK(text_at(x.json, "choices." + std::to_string(k) + ".text") == text);
  }
  CHECK(eventually([&] { return s.idle(); }));

  // The slots of an admission with three choices.
  caf::scoped_actor self{s.node().system()};
  const auto first = scheduler::sequence_of(request_id{77}, 0);
  self->request(s.node().server()->scheduler, deadline, admit{first, 3, prompt_tokens, false})
      .receive([](const admitted&) {}, [&](caf::error& e) { FAIL(s.node().system().render(e)); });
  CHECK(eventually([&] { // the canary has one at times
    return s.slots_used() == prompt_tokens + 3 * s.node().server()->window_slots;
  }));
  kv_release back;
  back.epoch = s.node().server()->epoch;
  for (uint32_t k = 0; k < 3; ++k) {
    back.holders.push_back(scheduler::sequence_of(request_id{77}, k));
    self->send(s.node().server()->scheduler, retire{back.holders.back()});
  }
  self->send(s.node().server()->allocator, back);
  CHECK(eventually([&] { return s.idle(); }));
}

} // namespace lamella::actors::test
