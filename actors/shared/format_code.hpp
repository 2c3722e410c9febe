/// Code of fmt 9 that is made once, in format_code.cpp, and not in every file that logs a line.
/// Part of the precompiled headers; nothing else needs it.
#pragma once

#include <fmt/format.h>

#if FMT_VERSION < 100000 // later ones have it in their library
#define LAMELLA_FORMAT_CODE(where)                                                                 \
  where template void fmt::detail::vformat_to<char>(fmt::detail::buffer<char>&, fmt::string_view,  \
                                                    fmt::format_args, fmt::detail::locale_ref);
#else
#define LAMELLA_FORMAT_CODE(where)
#endif
LAMELLA_FORMAT_CODE(extern)
