#include "actors/gateway/trace_audience.hpp"

namespace lamella::actors {

bool trace_audience::take_in(const net::http_exchange_ptr& one_more, time_point now,
                             caf::timespan newest) {
  std::string text;
  {
    const std::lock_guard lock{mutex_};
    if (!over_) {
      if (recording_.expired() || waiting_.size() >= waiting_max) return false;
      waiting_.push_back(one_more);
      return true;
    }
    if (text_.empty() || now - began_ > newest) return false;
    text = text_;
  }
  one_more->respond(200, net::json_content, std::move(text));
  return true;
}

void trace_audience::deliver(std::string text) {
  std::vector<net::http_exchange_ptr> all;
  {
    const std::lock_guard lock{mutex_};
    over_ = true;
    all.swap(waiting_);
    if (text.size() <= kept_bytes_max) text_ = text;
  }
  for (const auto& exchange : all) exchange->respond(200, net::json_content, text);
}

void trace_audience::refuse(const net::api_error& why) {
  std::vector<net::http_exchange_ptr> all;
  {
    const std::lock_guard lock{mutex_};
    over_ = true;
    all.swap(waiting_);
  }
  for (const auto& exchange : all) net::respond_error(*exchange, why);
}

} // namespace lamella::actors
