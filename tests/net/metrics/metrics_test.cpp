// The contract with dashboards and scrapers: names, types, labels and buckets.
#include "net/metrics/metrics.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <map>
#include <sstream>
#include <thread>

using namespace lamella::net;

namespace {

metrics::settings settings() {
  metrics::settings s;
  s.model_name = "m";
  s.context_tokens = 2048;
  s.version = "1.2.3";
  s.slot_count = 1600;
  s.workers = {{"model", "model-0"}, {"attention", "attention-0"}, {"attention", "attention-1"}};
  return s;
}

/// The value of a series, by its exact text; -1 when it is missing.
double value(const std::string& page, const std::string& series) {
  std::istringstream lines(page);
  for (std::string line; std::getline(lines, line);)
    if (line.starts_with(series + " ")) return std::stod(line.substr(series.size() + 1));
  return -1;
}

/// "name type" of each family.
std::string families(const std::string& page) {
  std::istringstream lines(page);
  std::string out;
  for (std::string line; std::getline(lines, line);)
    if (line.starts_with("# TYPE ")) out += line.substr(7) + "\n";
  return out;
}

} // namespace

TEST_CASE("all families are there from the first scrape, with these names and types") {
  CHECK(families(metrics(settings()).scrape().body)
        == "http_request_duration_seconds histogram\n"
           "http_requests_total counter\n"
           "lamella_admission_rejected_total counter\n"
           "lamella_batch_size histogram\n"
           "lamella_batches_in_flight gauge\n"
           "lamella_bodies_refused_total counter\n"
           "lamella_body_bytes gauge\n"
           "lamella_build_info gauge\n"
           "lamella_config_reload_total counter\n"
           "lamella_divergence_total counter\n"
           "lamella_expected_seconds gauge\n"
           "lamella_failovers_total counter\n"
           "lamella_fenced_total counter\n"
           "lamella_frames_dropped_total counter\n"
           "lamella_heartbeat_age_seconds gauge\n"
           "lamella_http_answer_bytes gauge\n"
           "lamella_http_answers_refused_total counter\n"
           "lamella_http_connections_open gauge\n"
           "lamella_http_connections_refused_total counter\n"
           "lamella_http_connections_total counter\n"
           "lamella_http_disconnects_total counter\n"
           "lamella_http_errors_total counter\n"
           "lamella_http_requests_open gauge\n"
           "lamella_http_stalls_total counter\n"
           "lamella_iteration_seconds histogram\n"
           "lamella_kv_digests_compared_total counter\n"
           "lamella_kv_integrity_failures_total counter\n"
           "lamella_kv_move_seconds histogram\n"
           "lamella_kv_moved_bytes_total counter\n"
           "lamella_kv_moved_slots_total counter\n"
           "lamella_kv_moves_aborted_total counter\n"
           "lamella_kv_parity_lag_tokens gauge\n"
           "lamella_kv_placements_total counter\n"
           "lamella_kv_pull_seconds histogram\n"
           "lamella_kv_pulled_bytes_total counter\n"
           "lamella_kv_rebuild_bytes_total counter\n"
           "lamella_kv_rebuild_seconds histogram\n"
           "lamella_kv_rebuilt_tokens_total counter\n"
           "lamella_kv_slots gauge\n"
           "lamella_kv_usage_ratio gauge\n"
           "lamella_launches_stopped_seconds histogram\n"
           "lamella_link_bytes_total counter\n"
           "lamella_link_rtt_seconds histogram\n"
           "lamella_load_progress_ratio gauge\n"
           "lamella_log_lines_dropped_total counter\n"
           "lamella_mailbox_depth gauge\n"
           "lamella_mixed_replicas gauge\n"
           "lamella_parity_checked_slots_total counter\n"
           "lamella_parity_mismatches_total counter\n"
           "lamella_parity_rebuilt_slots_total counter\n"
           "lamella_pool_changes_total counter\n"
           "lamella_pool_members gauge\n"
           "lamella_pool_target_members gauge\n"
           "lamella_pool_wish gauge\n"
           "lamella_prompts_overflowed_total counter\n"
           "lamella_ready gauge\n"
           "lamella_recovery_alarm gauge\n"
           "lamella_recovery_alarms_total counter\n"
           "lamella_recovery_pause_seconds histogram\n"
           "lamella_requests_lost_total counter\n"
           "lamella_requests_poisoned_total counter\n"
           "lamella_requests_recovered_total counter\n"
           "lamella_requests_recovering gauge\n"
           "lamella_requests_total counter\n"
           "lamella_role_busy_ratio gauge\n"
           "lamella_sequences_overflowed_total counter\n"
           "lamella_sequences_stood_back_total counter\n"
           "lamella_spans_dropped_total counter\n"
           "lamella_spans_exported_total counter\n"
           "lamella_time_correction_ratio gauge\n"
           "lamella_traceparents_malformed_total counter\n"
           "lamella_unknown_params_total counter\n"
           "lamella_worker_slow gauge\n"
           "lamella_worker_state gauge\n"
           "lamella_worker_up gauge\n"
           "process_cpu_seconds_total counter\n"
           "process_max_fds gauge\n"
           "process_open_fds gauge\n"
           "process_resident_memory_bytes gauge\n"
           "process_start_time_seconds gauge\n"
           "process_virtual_memory_bytes gauge\n"
           "vllm:cache_config_info gauge\n"
           "vllm:e2e_request_latency_seconds histogram\n"
           "vllm:generation_tokens_total counter\n"
           "vllm:inter_token_latency_seconds histogram\n"
           "vllm:iteration_tokens_total histogram\n"
           "vllm:kv_cache_usage_perc gauge\n"
           "vllm:num_preemptions_total counter\n"
           "vllm:num_requests_running gauge\n"
           "vllm:num_requests_waiting gauge\n"
           "vllm:prefix_cache_hits_total counter\n"
           "vllm:prefix_cache_queries_total counter\n"
           "vllm:prompt_tokens_total counter\n"
           "vllm:request_decode_time_seconds histogram\n"
           "vllm:request_generation_tokens histogram\n"
           "vllm:request_inference_time_seconds histogram\n"
           "vllm:request_params_max_tokens histogram\n"
           "vllm:request_params_n histogram\n"
           "vllm:request_prefill_time_seconds histogram\n"
           "vllm:request_prompt_tokens histogram\n"
           "vllm:request_queue_time_seconds histogram\n"
           "vllm:request_success_total counter\n"
           "vllm:request_time_per_output_token_seconds histogram\n"
           "vllm:time_to_first_token_seconds histogram\n");
}

TEST_CASE("series begin at 0 with the labels that dashboards select by") {
  const std::string page = metrics(settings()).scrape().body;
  for (const char* series :
       {R"(vllm:num_requests_running{engine="0",model_name="m"})",
        R"(vllm:kv_cache_usage_perc{engine="0",model_name="m"})",
        R"(vllm:request_success_total{engine="0",finished_reason="abort",model_name="m"})",
        R"(vllm:time_to_first_token_seconds_count{engine="0",model_name="m"})",
        R"(vllm:time_to_first_token_seconds_bucket{engine="0",model_name="m",le="0.001"})",
        R"(vllm:time_to_first_token_seconds_bucket{engine="0",model_name="m",le="2560"})",
        R"(vllm:inter_token_latency_seconds_bucket{engine="0",model_name="m",le="0.0025"})",
        R"(vllm:e2e_request_latency_seconds_bucket{engine="0",model_name="m",le="7680"})",
        R"(vllm:request_prompt_tokens_bucket{engine="0",model_name="m",le="2000"})",
        R"(vllm:iteration_tokens_total_bucket{engine="0",model_name="m",le="16384"})",
        R"(http_requests_total{handler="/v1/chat/completions",method="POST",status="2xx"})",
        R"(lamella_requests_total{code="",model_name="m",outcome="done"})",
        R"(lamella_requests_lost_total{role="attention"})",
        R"(lamella_admission_rejected_total{reason="queue_tokens"})",
        R"(lamella_failovers_total{cause="exit",role="model"})",
        R"(lamella_pool_changes_total{pool="attention",result="rolled_back"})",
        R"(lamella_launches_stopped_seconds_bucket{le="0.001"})",
        R"(lamella_kv_slots{role="attention",state="orphan",worker="attention-1"})",
        R"(lamella_kv_usage_ratio{role="attention",worker="attention-0"})",
        R"(lamella_worker_slow{role="attention",worker="attention-1"})",
        R"(lamella_worker_up{role="model",worker="model-0"})",
        R"(lamella_iteration_seconds_count{stage="combine"})",
        R"(lamella_load_progress_ratio{phase="weights"})",
        R"(lamella_link_rtt_seconds_count{peer_role="attention",transport="in_process"})",
        R"(lamella_heartbeat_age_seconds{role="model",worker="model-0"})",
        R"(lamella_role_busy_ratio{role="model",worker="model-0"})",
        R"(lamella_worker_state{role="model",state="live",worker="model-0"})",
        R"(lamella_mailbox_depth{actor="scheduler"})"}) {
    CAPTURE(series);
    CHECK(value(page, series) == 0);
  }
  CHECK(page.find(R"(request_prompt_tokens_bucket{engine="0",model_name="m",le="5000")")
        == std::string::npos);
  CHECK(value(page, R"(lamella_build_info{caf="",commit="",simd="",version="1.2.3"})") == 1);
  CHECK(
      value(
          page,
          R"(vllm:cache_config_info{block_size="16",engine="0",model_name="m",num_gpu_blocks="100"})")
      == 1);
  CHECK(value(page, "process_resident_memory_bytes") > 1e6);
  CHECK(value(page, "process_open_fds") >= 3);
  CHECK(value(page, "process_start_time_seconds") > 1.7e9);
}

TEST_CASE("what happens is counted where it belongs") {
  metrics m(settings());
  request_times t;
  t.e2e = 1.25;
  t.queue = 0.25;
  t.prefill = 0.5;
  t.decode = 0.5;
  t.gaps = 0.9; // of two choices, one of 12 tokens and one of 10
  t.gap_count = 20;
  t.prompt_tokens = 7;
  t.generated_tokens = 22;
  t.max_tokens = 100;
  t.n = 2;
  t.end = request_end::length;
  m.request_finished(t);
  m.request_ended(request_outcome::done);
  m.request_ended(request_outcome::rejected, "queue_full");
  m.admission_rejected(rejection::queue_requests);
  m.first_token(0.03);
  m.token_gap(0.002);
  m.token_gap(0.02);
  m.tokens_prompted(7);
  m.tokens_generated(22);
  m.set_requests(3, 4);
  m.set_kv_slots("attention-0", {.free = 12, .used = 4});
  m.set_kv_slots("attention-1", {.free = 4, .used = 12});
  m.http_request("/v1/models", "GET", 404, 0.1);
  m.http_request("/v1/models", "BREW", 200, 0.1);
  m.iteration(9, 8);
  m.iteration_time(iteration_stage::attention, 0.003);
  m.link_bytes("attention", "shm", 4096);
  m.set_worker_state("model", "model-0", worker_condition::live);
  m.set_worker_slow("attention", "attention-0", true);
  m.set_cache_config(16, 50);
  const std::string page = m.scrape().body;
  const std::string labels = R"({engine="0",model_name="m"})";
  CHECK(value(page, "vllm:e2e_request_latency_seconds_sum" + labels) == 1.25);
  CHECK(value(page, "vllm:request_inference_time_seconds_sum" + labels) == 1.0);
  CHECK(value(page, "vllm:request_time_per_output_token_seconds_sum" + labels) == 0.045);
  CHECK(value(page, "vllm:request_params_n_sum" + labels) == 2);
  CHECK(value(page,
              R"(vllm:request_success_total{engine="0",finished_reason="length",model_name="m"})")
        == 1);
  CHECK(
      value(page, R"(lamella_requests_total{code="queue_full",model_name="m",outcome="rejected"})")
      == 1);
  CHECK(value(page, R"(lamella_admission_rejected_total{reason="queue_requests"})") == 1);
  CHECK(
      value(page, R"(vllm:time_to_first_token_seconds_bucket{engine="0",model_name="m",le="0.02"})")
      == 0);
  CHECK(
      value(page, R"(vllm:time_to_first_token_seconds_bucket{engine="0",model_name="m",le="0.04"})")
      == 1);
  CHECK(value(page, "vllm:inter_token_latency_seconds_count" + labels) == 2);
  CHECK(
      value(page, R"(vllm:inter_token_latency_seconds_bucket{engine="0",model_name="m",le="+Inf"})")
      == 2);
  CHECK(value(page, "vllm:prompt_tokens_total" + labels) == 7);
  CHECK(value(page, "vllm:num_requests_waiting" + labels) == 4);
  CHECK(value(page, "vllm:kv_cache_usage_perc" + labels) == 0.75);
  CHECK(value(page, R"(lamella_kv_slots{role="attention",state="used",worker="attention-1"})")
        == 12);
  CHECK(value(page, R"(http_requests_total{handler="/v1/models",method="GET",status="4xx"})") == 1);
  CHECK(value(page, R"(http_requests_total{handler="/v1/models",method="other",status="2xx"})")
        == 1);
  CHECK(value(page, "lamella_batch_size_sum") == 8);
  CHECK(value(page, R"(lamella_iteration_seconds_count{stage="attention"})") == 1);
  CHECK(value(page, R"(lamella_link_bytes_total{peer_role="attention",transport="shm"})") == 4096);
  CHECK(value(page, R"(lamella_worker_up{role="model",worker="model-0"})") == 1);
  CHECK(value(page, R"(lamella_worker_state{role="model",state="live",worker="model-0"})") == 1);
  CHECK(value(page, R"(lamella_worker_state{role="model",state="missing",worker="model-0"})") == 0);
  CHECK(value(page, R"(lamella_worker_slow{role="attention",worker="attention-0"})") == 1);
  CHECK(
      value(
          page,
          R"(vllm:cache_config_info{block_size="16",engine="0",model_name="m",num_gpu_blocks="50"})")
      == 1);
  CHECK(page.find("num_gpu_blocks=\"100\"") == std::string::npos);

  m.set_bodies(4096, 2);
  m.set_bodies(1024, 3);
  http_totals server;
  server.connections = 9;
  server.accepted = 20;
  server.refused = 3;
  m.set_http(server);
  server.connections = 2;
  server.accepted = 25;
  server.answer_bytes = 4096;
  m.set_http(server);
  m.log_dropped("control", 5);
  m.log_dropped("control", 1);
  const std::string told = m.scrape().body;
  CHECK(value(told, "lamella_body_bytes") == 1024);
  CHECK(value(told, "lamella_bodies_refused_total") == 3);
  CHECK(value(told, "lamella_http_connections_open") == 2);
  CHECK(value(told, "lamella_http_connections_total") == 25);
  CHECK(value(told, "lamella_http_connections_refused_total") == 3);
  CHECK(value(told, "lamella_http_answer_bytes") == 4096);
  CHECK(value(told, R"(lamella_log_lines_dropped_total{role="control"})") == 6);

  m.remove_worker("attention", "attention-1");
  const std::string after = m.scrape().body;
  CHECK(after.find("attention-1") == std::string::npos);
  CHECK(value(after, "vllm:kv_cache_usage_perc" + labels) == 0.25);
}

TEST_CASE("clients cannot make series without end") {
  metrics m(settings());
  for (int i = 0; i < 1000; ++i) m.unknown_param("p" + std::to_string(i));
  m.unknown_param("p3");
  const std::string page = m.scrape().body;
  CHECK(value(page, R"(lamella_unknown_params_total{param="p3"})") == 2);
  CHECK(value(page, R"(lamella_unknown_params_total{param="other"})") == 1000 - 64);
  CHECK(value(page, R"(lamella_unknown_params_total{param="p999"})") == -1);
}

TEST_CASE("both text formats are served, and label values are escaped") {
  metrics m(settings());
  m.unknown_param("a\"b\\c\nd");
  const auto plain = m.scrape("text/plain");
  CHECK(plain.content_type == "text/plain; version=0.0.4; charset=utf-8");
  CHECK(value(plain.body, R"(lamella_unknown_params_total{param="a\"b\\c\nd"})") == 1);
  const auto open = m.scrape("application/openmetrics-text;version=1.0.0,text/plain;q=0.5");
  CHECK(open.content_type == "application/openmetrics-text; version=1.0.0; charset=utf-8");
  CHECK(open.body.ends_with("# EOF\n"));
  CHECK(open.body.find("# TYPE vllm:prompt_tokens counter\n") != std::string::npos);
  CHECK(value(open.body, R"(vllm:prompt_tokens_total{engine="0",model_name="m"})") == 0);
  CHECK(open.body.find("# TYPE vllm:iteration_tokens_total histogram\n") != std::string::npos);
}

TEST_CASE("the text format is the one that the Accept header prefers") {
  const metrics m(settings());
  const auto opens = [&](std::string_view accept) {
    return m.scrape(accept).content_type.starts_with("application/openmetrics-text");
  };
  const std::string open = "application/openmetrics-text";
  const std::vector<std::string> preferred{open,
                                           open + ";q=0.1",
                                           open + "; q=0.5 , text/plain;q=0.5",
                                           "text/plain;q=0.2," + open,
                                           open + ";version=1.0.0," + open
                                               + ";version=0.0.1;q=0.75,text/plain;q=0.8,*/*;q=0.1",
                                           "APPLICATION/OpenMetrics-Text;Q=0.5,*/*;q=0.1"};
  for (const auto& accept : preferred) CHECK_MESSAGE(opens(accept), accept);
  const std::vector<std::string> others{open + ";q=0.1, text/plain;q=0.9",
                                        open + ";q=0.5,*/*",
                                        open + ";q=0",
                                        open + "2",
                                        open + ";q=0.5,text/*;q=0.6,*/*;q=0.1",
                                        "*/*",
                                        ""};
  for (const auto& accept : others) CHECK_MESSAGE(!opens(accept), accept);
}

TEST_CASE("some samples may be asked for alone, by their whole names") {
  metrics m(settings());
  m.tokens_generated(7);
  m.first_token(0.5);
  const std::string_view names[] = {"vllm:generation_tokens_total",
                                    "vllm:time_to_first_token_seconds_count", "lamella_none"};
  CHECK(m.samples(names)
        == "vllm:generation_tokens_total{engine=\"0\",model_name=\"m\"} 7\n"
           "vllm:time_to_first_token_seconds_count{engine=\"0\",model_name=\"m\"} 1\n");
  CHECK(m.samples({}).empty());
}

TEST_CASE("metrics may be told and scraped from many threads") {
  metrics m(settings());
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([&m, t] {
      for (int i = 0; i < 500; ++i) {
        m.token_gap(0.01);
        m.request_ended(request_outcome::error, "code" + std::to_string(i % 70));
        m.set_kv_slots("w" + std::to_string(t), {.free = 1, .used = 1});
        m.computed("model", "w" + std::to_string(t), 0.01);
        m.set_in_flight(static_cast<uint32_t>(t), i % 2 == 0);
        if (i % 100 == 0) m.scrape();
      }
    });
  for (auto& thread : threads) thread.join();
  CHECK(
      value(m.scrape().body, R"(vllm:inter_token_latency_seconds_count{engine="0",model_name="m"})")
      == 2000);
}
