// The only file that is compiled with these paths: all others come out of a compiler cache in any
// checkout.
#include "tests/folders.hpp"

namespace lamella::tests {

const char* const source_folder = LAMELLA_SOURCE_DIR;
const char* const build_folder = LAMELLA_BUILD_DIR;

} // namespace lamella::tests
