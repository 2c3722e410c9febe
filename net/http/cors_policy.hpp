/// Which web pages may read a listener's answers (CORS: the HTTP-CORS protocol of the Fetch
/// standard). A browser asks with every request of a page, and before most of them.
#pragma once

#include "net/http/http_exchange.hpp"

#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace lamella::net {

/// Origins, as browsers write them ("https://chat.example.org:8443"), whose pages may read answers;
/// "*" is all of them. None to begin with.
class cors_policy {
public:
  cors_policy() = default;
  explicit cors_policy(std::vector<std::string> origins) : origins_(std::move(origins)) {}

  /// What every answer to this request has to say to the browser, and the answer to its question
  /// beforehand (OPTIONS) as well; nothing for pages of other origins. Cost: O(origins).
  http_headers answer_fields(std::string_view method, const http_headers& request) const;

private:
  std::vector<std::string> origins_;
};

} // namespace lamella::net
