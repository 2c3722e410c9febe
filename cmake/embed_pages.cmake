# Writes OUT, a C++ file that has every file of FOLDER as a text, so that the program needs none of
# them beside it. Run with -P when one of them has changed.
# cmake -DFOLDER=folder -DOUT=file -P embed_pages.cmake
file(GLOB names RELATIVE "${FOLDER}" "${FOLDER}/*")
list(SORT names)
set(rows "")
foreach(name ${names})
  file(READ "${FOLDER}/${name}" text)
  string(APPEND rows "    {\"${name}\", R\"embedded(${text})embedded\"},\n")
endforeach()
file(WRITE "${OUT}" "// Made by cmake/embed_pages.cmake.
#include \"net/console/pages.hpp\"

#include <array>

namespace lamella::net {

std::span<const page_file> page_files() {
  static constexpr auto all = std::to_array<page_file>({
${rows}  });
  return all;
}

} // namespace lamella::net
")
