// The pages for browsers: who gets which file, and what no file may have in it.
#include "net/console/pages.hpp"

#include <doctest/doctest.h>

#include <set>
#include <string>

using namespace lamella::net;

namespace {

constexpr auto everybody = page_reader::everybody;
constexpr auto operators = page_reader::operators;

std::string_view name_at(std::string_view path, page_reader reader) {
  const auto* file = find_page(path, reader);
  return file ? file->name : "none";
}

/// What stands between an opening and the next quote, at each place.
std::set<std::string> quoted_after(std::string_view text, std::string_view opening) {
  std::set<std::string> found;
  for (size_t at = 0; (at = text.find(opening, at)) != text.npos;) {
    at += opening.size();
    found.emplace(text.substr(at, text.find_first_of("\"'", at) - at));
  }
  return found;
}

} // namespace

TEST_CASE("operators get the console and the chat, everybody else the chat alone") {
  CHECK(name_at("/", operators) == "console.html");
  CHECK(name_at("/chat", operators) == "chat.html");
  CHECK(name_at("/chat/", operators) == "chat.html");
  CHECK(name_at("/", everybody) == "chat.html");
  CHECK(name_at("/chat", everybody) == "none");
  CHECK(name_at("/ui/console.js", operators) == "console.js");
  CHECK(name_at("/ui/chat.js", operators) == "chat.js");
  CHECK(name_at("/ui/chat.js", everybody) == "chat.js");
  CHECK(name_at("/ui/common.css", everybody) == "common.css");
  for (const char* path : {"/ui/console.js", "/ui/console.css", "/ui/console_actions.js"})
    CHECK(name_at(path, everybody) == "none");
  for (const char* path : {"/ui", "/ui/", "/ui/none.js", "/ui/chat.html", "/ui/../pages.cpp", "//",
                           "/ui/%63hat.js", "/index.html", ""})
    for (const auto reader : {everybody, operators}) {
      CAPTURE(path);
      CHECK(name_at(path, reader) == "none");
    }
}

TEST_CASE("each file says what it is, and that a browser runs nothing from elsewhere") {
  const std::set<std::string> known{"text/html; charset=utf-8", "text/css; charset=utf-8",
                                    "text/javascript; charset=utf-8", "image/svg+xml"};
  for (const auto& file : page_files()) {
    CAPTURE(file.name);
    const auto fields = page_headers(file);
    CHECK(known.contains(std::string{fields.get("content-type")}));
    CHECK(fields.get("x-content-type-options") == "nosniff");
    const auto policy = fields.get("content-security-policy");
    CHECK(policy.starts_with("default-src 'none'; script-src 'self'; style-src 'self'"));
    CHECK(policy.find("frame-ancestors 'none'") != policy.npos);
    CHECK(policy.find("unsafe") == policy.npos);
  }
  CHECK(page_headers(*find_page("/", operators)).get("content-type") == "text/html; charset=utf-8");
  CHECK(page_headers(*find_page("/ui/icon.svg", everybody)).get("content-type") == "image/svg+xml");
}

TEST_CASE("no file has code or style within a page, reads text as markup, or names another host") {
  CHECK(page_files().size() > 10);
  for (const auto& file : page_files()) {
    CAPTURE(file.name);
    CHECK(file.text.size() > 100);
    for (const char* word :
         {"innerHTML", "outerHTML", "insertAdjacentHTML", "document.write", "eval(", "new Function",
          "DOMParser", "https://", "localStorage", "sessionStorage", "javascript:", "@import"})
      CHECK_MESSAGE(file.text.find(word) == file.text.npos, word);
    if (file.name.ends_with(".html"))
      for (const char* word : {"<style", " style=", "<script>", " onclick=", " onload="})
        CHECK_MESSAGE(file.text.find(word) == file.text.npos, word);
  }
}

TEST_CASE("whoever gets a page gets the files that it names, and those that these name") {
  for (const auto reader : {everybody, operators})
    for (const char* start : {"/", "/chat"}) {
      const auto* page = find_page(start, reader);
      if (!page) continue;
      std::set<std::string> seen;
      std::set<std::string> left = quoted_after(page->text, "\"/ui/");
      CHECK(left.size() > 3);
      while (!left.empty()) {
        const auto name = *left.begin();
        left.erase(left.begin());
        if (!seen.insert(name).second) continue;
        CAPTURE(name);
        const auto* file = find_page("/ui/" + name, reader);
        REQUIRE(file != nullptr);
        left.merge(quoted_after(file->text, "from './"));
      }
    }
}
