# Kernels: every instruction set is one translation unit with its own flags; which one runs is
# decided at start-up (gpu/kernels/operators.hpp).
file(GLOB kernel_sources CONFIGURE_DEPENDS gpu/kernels/*.cpp)
set(kernel_options -O3)
set(vector_options "")
if(LAMELLA_SANITIZE)
  # Addresses are what can go wrong in kernels. Those of the portable set are checked. The AVX sets
  # are the same code over other lanes and are not: with checks one of their files compiles for ten
  # minutes and in 5 GB.
  set(kernel_options -O1)
  if(LAMELLA_SANITIZE MATCHES "undefined")
    list(APPEND kernel_options -fno-sanitize=undefined)
  endif()
  set(vector_options -fno-sanitize=address)
endif()
set_source_files_properties(${kernel_sources} PROPERTIES COMPILE_OPTIONS "${kernel_options}")
set(avx512_options "")
if(CMAKE_SYSTEM_PROCESSOR STREQUAL "x86_64")
  set(avx512_options ${vector_options} -mavx512f -mavx512bw -mavx512vl -mavx512dq -mavx512vnni -mfma -mf16c)
  set_source_files_properties(gpu/kernels/avx2.cpp PROPERTIES
    COMPILE_OPTIONS "${kernel_options};${vector_options};-mavx2;-mfma;-mf16c")
  set_source_files_properties(gpu/kernels/avxvnni.cpp PROPERTIES
    COMPILE_OPTIONS "${kernel_options};${vector_options};-mavx2;-mfma;-mf16c;-mavxvnni")
  set_source_files_properties(gpu/kernels/avx512.cpp gpu/kernels/amx.cpp PROPERTIES
    COMPILE_OPTIONS "${kernel_options};${avx512_options}")
endif()
