# Kernels: every instruction set is one translation unit with its own flags; which one runs is
# decided at start-up (gpu/kernels/operators.hpp).
file(GLOB kernel_sources CONFIGURE_DEPENDS gpu/kernels/*.cpp)
set_source_files_properties(${kernel_sources} PROPERTIES COMPILE_OPTIONS "-O3")
if(CMAKE_SYSTEM_PROCESSOR STREQUAL "x86_64")
  set_source_files_properties(gpu/kernels/avx2.cpp PROPERTIES
    COMPILE_OPTIONS "-O3;-mavx2;-mfma;-mf16c")
  set_source_files_properties(gpu/kernels/avx512.cpp PROPERTIES
    COMPILE_OPTIONS "-O3;-mavx512f;-mavx512bw;-mavx512vl;-mavx512dq;-mavx512vnni;-mfma;-mf16c")
endif()
