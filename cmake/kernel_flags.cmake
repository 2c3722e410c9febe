# Kernels: every instruction set is one translation unit with its own flags; which one runs is
# decided at start-up (gpu/kernels/operators.hpp).
file(GLOB kernel_sources CONFIGURE_DEPENDS gpu/kernels/*.cpp)
set(kernel_options -O3)
if(LAMELLA_SANITIZE)
  # Unrolled and checked at every step, a file of vector code compiles for five minutes and more.
  # Addresses are what can go wrong there.
  set(kernel_options -O1)
  if(LAMELLA_SANITIZE MATCHES "undefined")
    list(APPEND kernel_options -fno-sanitize=undefined)
  endif()
endif()
set_source_files_properties(${kernel_sources} PROPERTIES COMPILE_OPTIONS "${kernel_options}")
set(avx512_options "")
if(CMAKE_SYSTEM_PROCESSOR STREQUAL "x86_64")
  set(avx512_options -mavx512f -mavx512bw -mavx512vl -mavx512dq -mavx512vnni -mfma -mf16c)
  set_source_files_properties(gpu/kernels/avx2.cpp PROPERTIES
    COMPILE_OPTIONS "${kernel_options};-mavx2;-mfma;-mf16c")
  set_source_files_properties(gpu/kernels/avxvnni.cpp PROPERTIES
    COMPILE_OPTIONS "${kernel_options};-mavx2;-mfma;-mf16c;-mavxvnni")
  set_source_files_properties(gpu/kernels/avx512.cpp gpu/kernels/amx.cpp PROPERTIES
    COMPILE_OPTIONS "${kernel_options};${avx512_options}")
endif()
