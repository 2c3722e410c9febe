/// The pages for browsers: the console of operators and the chat. Their files are in
/// net/console/files and part of the program.
#pragma once

#include "net/http/http_exchange.hpp"

#include <span>
#include <string_view>

namespace lamella::net {

/// One file of net/console/files.
struct page_file {
  std::string_view name; ///< "console.html"
  std::string_view text;
};

/// All of them, by name.
std::span<const page_file> page_files();

/// Who asks: operators see the console and the chat, everybody else the chat alone.
enum class page_reader : unsigned char { everybody, operators };

/// The file at a path: `/`, `/chat` (operators) and `/ui/NAME`. A trailing slash makes no
/// difference. Null where there is none for that reader.
const page_file* find_page(std::string_view path, page_reader reader);

/// Content type, and what a browser may do with the page: run and load files of this listener and
/// nothing else.
http_headers page_headers(const page_file& file);

} // namespace lamella::net
