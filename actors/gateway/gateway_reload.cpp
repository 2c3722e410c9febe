#include "actors/gateway/gateway_reload.hpp"

namespace lamella::actors {

void answer_reload(gateway_ptr self, const exchange_ptr& exchange) {
  auto& st = self->state;
  if (!st.reloading.expired()) {
    auto error = net::bad_request("a configuration reload is already in progress: retry soon");
    error.status = 409;
    error.retryable = true;
    throw error;
  }
  auto under_way = std::make_shared<bool>(true); // as long as somebody has it
  st.reloading = under_way;
  self->spawn<caf::detached>([exchange, reload = st.config.on_reload, under_way]() mutable {
    const auto report = reload();
    under_way.reset();
    if (report.problems.empty()) {
      exchange->respond(200, net::json_content, to_json(report));
      return;
    }
    std::string all;
    for (const auto& x : report.problems) all += (all.empty() ? "" : "; ") + x;
    auto error = net::bad_request("nothing was reloaded: " + all);
    error.code = report.passing ? "reload_refused" : "invalid_configuration";
    if (report.passing) error.status = 409, error.retryable = true;
    net::respond_error(*exchange, error);
  });
}

void serve_by_rules(gateway_ptr self, const service_ptr& server) {
  auto& st = self->state;
  st.server = server;
  if (!st.rules) return;
  auto ruled = std::make_shared<service>(*server);
  ruled->rules = *st.rules;
  self->send(ruled->scheduler, st.rules->queue);
  st.server = std::move(ruled);
}

} // namespace lamella::actors
