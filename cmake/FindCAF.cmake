# Finds the C++ Actor Framework as Debian packages it (no CMake or pkg-config file of its own).
# Targets: caf::core, caf::io, caf::openssl.
include(FindPackageHandleStandardArgs)
find_path(CAF_INCLUDE_DIR caf/all.hpp)
find_library(CAF_CORE_LIBRARY caf_core)
find_library(CAF_IO_LIBRARY caf_io)
find_library(CAF_OPENSSL_LIBRARY caf_openssl)
if(CAF_INCLUDE_DIR)
  file(STRINGS "${CAF_INCLUDE_DIR}/caf/config.hpp" caf_line REGEX "#define CAF_VERSION [0-9]+")
  string(REGEX REPLACE ".*CAF_VERSION ([0-9]+)" "\\1" caf_number "${caf_line}")
  math(EXPR caf_major "${caf_number} / 10000")
  math(EXPR caf_minor "(${caf_number} / 100) % 100")
  math(EXPR caf_patch "${caf_number} % 100")
  set(CAF_VERSION "${caf_major}.${caf_minor}.${caf_patch}")
endif()
find_package_handle_standard_args(
  CAF
  VERSION_VAR CAF_VERSION
  REQUIRED_VARS CAF_INCLUDE_DIR CAF_CORE_LIBRARY CAF_IO_LIBRARY CAF_OPENSSL_LIBRARY)
if(CAF_FOUND AND NOT TARGET caf::core)
  find_package(Threads REQUIRED)
  find_package(OpenSSL REQUIRED)
  foreach(part core io openssl)
    string(TOUPPER ${part} upper)
    add_library(caf::${part} UNKNOWN IMPORTED)
    set_target_properties(caf::${part} PROPERTIES
      IMPORTED_LOCATION "${CAF_${upper}_LIBRARY}"
      INTERFACE_SYSTEM_INCLUDE_DIRECTORIES "${CAF_INCLUDE_DIR}")
  endforeach()
  target_link_libraries(caf::core INTERFACE Threads::Threads)
  target_link_libraries(caf::io INTERFACE caf::core)
  target_link_libraries(caf::openssl INTERFACE caf::io OpenSSL::SSL OpenSSL::Crypto)
endif()
