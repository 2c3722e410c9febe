#include "net/console/pages.hpp"

#include <algorithm>

namespace lamella::net {

namespace {

/// What only the console needs: not for everybody. Pages themselves have no path below /ui/.
bool is_of_console(std::string_view name) { return name.starts_with("console"); }

std::string_view type_of(std::string_view name) {
  if (name.ends_with(".html")) return "text/html; charset=utf-8";
  if (name.ends_with(".css")) return "text/css; charset=utf-8";
  if (name.ends_with(".svg")) return "image/svg+xml";
  return "text/javascript; charset=utf-8";
}

const page_file* named(std::string_view name) {
  const auto files = page_files();
  const auto found = std::ranges::find(files, name, &page_file::name);
  return found == files.end() ? nullptr : &*found;
}

} // namespace

const page_file* find_page(std::string_view path, page_reader reader) {
  const bool operators = reader == page_reader::operators;
  if (path.size() > 2 && path.ends_with('/')) path.remove_suffix(1);
  if (path == "/") return named(operators ? "console.html" : "chat.html");
  if (path == "/chat") return operators ? named("chat.html") : nullptr;
  constexpr std::string_view folder = "/ui/";
  if (!path.starts_with(folder)) return nullptr;
  const auto name = path.substr(folder.size());
  if (name.ends_with(".html") || (is_of_console(name) && !operators)) return nullptr;
  return named(name);
}

http_headers page_headers(const page_file& file) {
  return {
      {"content-type", std::string{type_of(file.name)}},
      {"cache-control", "no-cache"},
      {"content-security-policy",
       "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; "
       "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; "
       "require-trusted-types-for 'script'; trusted-types 'none'"},
      {"x-content-type-options", "nosniff"},
      {"x-frame-options", "DENY"},
      {"referrer-policy", "no-referrer"},
      {"cross-origin-opener-policy", "same-origin"},
      {"cross-origin-resource-policy", "same-origin"},
  };
}

} // namespace lamella::net
