/// Where the sources and the programs under test are.
#pragma once

namespace lamella::tests {

extern const char* const source_folder; ///< of the checkout
extern const char* const build_folder;  ///< that CMake builds it in

} // namespace lamella::tests
