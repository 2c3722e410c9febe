# The GPU part: liblamella_cuda.so and its tests. AUTO builds it where nvcc is found.
set(LAMELLA_CUDA AUTO CACHE STRING "AUTO, ON or OFF: build the GPU part (needs nvcc)")
set_property(CACHE LAMELLA_CUDA PROPERTY STRINGS AUTO ON OFF)
set(LAMELLA_CUDA_FOUND FALSE)

# find_toolkit(): CMake's CUDAToolkit. FindCUDAToolkit of CMake 3.25 deprecates CUDA::nvToolsExt for projects that ask for
# 3.25 or later, and fails where the toolkit has no such library, as that of CUDA 13.
macro(find_toolkit)
  set(minimum_required ${CMAKE_MINIMUM_REQUIRED_VERSION})
  set(CMAKE_MINIMUM_REQUIRED_VERSION 3.24)
  find_package(CUDAToolkit 12.2 QUIET)
  set(CMAKE_MINIMUM_REQUIRED_VERSION ${minimum_required})
endmacro()

if(NOT LAMELLA_CUDA STREQUAL "OFF" AND NOT LAMELLA_SANITIZE)
  include(CheckLanguage)
  if(NOT CMAKE_CUDA_COMPILER AND EXISTS /usr/local/cuda/bin/nvcc)
    set(CMAKE_CUDA_COMPILER /usr/local/cuda/bin/nvcc)
  endif()
  check_language(CUDA)
  if(CMAKE_CUDA_COMPILER)
    # 12.2 is the first whose assembler knows stores to registers of other devices (PTX 8.2).
    execute_process(COMMAND "${CMAKE_CUDA_COMPILER}" --version OUTPUT_VARIABLE nvcc_version ERROR_QUIET)
    string(REGEX MATCH "release ([0-9]+\\.[0-9]+)" nvcc_version "${nvcc_version}")
    set(nvcc_version "${CMAKE_MATCH_1}")
    if(nvcc_version VERSION_LESS 12.2)
      set(missing "${CMAKE_CUDA_COMPILER} is of CUDA '${nvcc_version}'; 12.2 or later is needed")
    else()
      set(CMAKE_CUDA_ARCHITECTURES 80-real 90-real 90-virtual)
      set(CMAKE_CUDA_FLAGS_RELEASE "-O3")
      enable_language(CUDA)
      if(NOT CMAKE_CUDA20_STANDARD_COMPILE_OPTION) # CMake 3.25 does not know it of newer compilers
        set(CMAKE_CUDA20_STANDARD_COMPILE_OPTION "-std=c++20")
        set(CMAKE_CUDA20_EXTENSION_COMPILE_OPTION "-std=c++20")
      endif()
      find_toolkit()
      if(TARGET CUDA::cudart_static AND TARGET CUDA::cublasLt)
        set(LAMELLA_CUDA_FOUND TRUE)
      else()
        set(missing "the runtime's or cuBLASLt's files for development were not found")
      endif()
    endif()
  else()
    set(missing "nvcc was not found; install the CUDA toolkit or set CMAKE_CUDA_COMPILER")
  endif()
  if(NOT LAMELLA_CUDA_FOUND AND LAMELLA_CUDA STREQUAL "ON")
    message(FATAL_ERROR "LAMELLA_CUDA=ON, but ${missing}")
  endif()
elseif(LAMELLA_SANITIZE AND LAMELLA_CUDA STREQUAL "ON")
  message(FATAL_ERROR "LAMELLA_CUDA=ON, but nvcc knows no sanitizers (LAMELLA_SANITIZE=${LAMELLA_SANITIZE})")
elseif(LAMELLA_SANITIZE)
  set(missing "nvcc knows no sanitizers")
  # Its headers are enough for tests whose kernels run on the CPU.
  if(NOT LAMELLA_CUDA STREQUAL "OFF")
    find_toolkit()
  endif()
else()
  set(missing "switched off")
endif()

set(LAMELLA_CUDA_HEADERS FALSE)
if(TARGET CUDA::cublasLt)
  set(LAMELLA_CUDA_HEADERS TRUE)
endif()

# The driver, the ring ends and their tests, over a runtime made of threads.
file(GLOB cuda_host_tests CONFIGURE_DEPENDS "${CMAKE_SOURCE_DIR}/tests/gpu/fake_cuda/*.cpp"
  "${CMAKE_SOURCE_DIR}/gpu/cuda/driver/*.cpp")

if(NOT LAMELLA_CUDA_FOUND)
  message(STATUS "GPU part: not built (LAMELLA_CUDA=${LAMELLA_CUDA}): ${missing}")
  return()
endif()

# Warnings of the host compiler, of nvcc and of the assembler end the build.
set(cuda_warnings -Xcompiler=-Wall,-Wextra,-Werror -Werror=all-warnings)

file(GLOB_RECURSE cuda_sources CONFIGURE_DEPENDS gpu/cuda/*.cpp gpu/cuda/*.cu)
list(APPEND cuda_sources net/rdma/fhbn_device.cu net/rdma/ring_posts.cu) # they post into a network adapter's queue
list(FILTER cuda_sources EXCLUDE REGEX "/(attention_plan\\.cpp|wgmma_gemm\\.cu|bench/[^/]*)$")
# wgmma exists on sm_90a alone: a unit of its own, for that target only.
add_library(lamella_wgmma OBJECT gpu/cuda/gemm/wgmma_gemm.cu)
set_target_properties(lamella_wgmma PROPERTIES CUDA_ARCHITECTURES OFF)
target_compile_options(lamella_wgmma PRIVATE
  "$<$<COMPILE_LANGUAGE:CUDA>:--generate-code=arch=compute_90a,code=[sm_90a]>")
add_library(lamella_cuda SHARED ${cuda_sources} $<TARGET_OBJECTS:lamella_wgmma>)
target_link_libraries(lamella_cuda PRIVATE lamella_gpu CUDA::cudart_static CUDA::cublasLt)
target_compile_definitions(lamella_cuda PRIVATE LAMELLA_VERSION="${PROJECT_VERSION}")
set_target_properties(lamella_cuda PROPERTIES
  CUDA_RUNTIME_LIBRARY Static
  LIBRARY_OUTPUT_DIRECTORY "${CMAKE_BINARY_DIR}")
foreach(part lamella_cuda lamella_wgmma)
  target_include_directories(${part} PRIVATE "${CMAKE_SOURCE_DIR}")
  # Nothing is contracted or approximated unless a kernel says so.
  target_compile_options(${part} PRIVATE
    "$<$<COMPILE_LANGUAGE:CUDA>:--expt-relaxed-constexpr;-fmad=false;${cuda_warnings}>")
endforeach()

# What the assembler says of the kernels that live in registers is kept beside their objects, for
# tests/gpu/cuda/spills_test.sh.
set_source_files_properties(gpu/cuda/attention/attention_previous.cu gpu/cuda/attention/attention_rows.cu
  gpu/cuda/attention/attention_finish.cu gpu/cuda/gemm/mma_gemm.cu gpu/cuda/gemm/wgmma_gemm.cu
  PROPERTIES COMPILE_OPTIONS "-Xptxas=-v")
set_target_properties(lamella_cuda lamella_wgmma PROPERTIES
  RULE_LAUNCH_COMPILE "${CMAKE_SOURCE_DIR}/cmake/keep_ptxas_report <OBJECT>")

# Benchmarks: built by deploy/gpu-check, by `ninja gpu_benchmarks` and with test_cuda.
add_custom_target(gpu_benchmarks)
function(lamella_gpu_benchmark name source)
  add_executable(${name} EXCLUDE_FROM_ALL ${source})
  target_link_libraries(${name} PRIVATE ${ARGN} lamella_cuda CUDA::cudart_static)
  target_compile_options(${name} PRIVATE
    "$<$<COMPILE_LANGUAGE:CUDA>:--expt-relaxed-constexpr;${cuda_warnings}>")
  set_target_properties(${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY "${CMAKE_BINARY_DIR}")
  add_dependencies(gpu_benchmarks ${name})
endfunction()
lamella_gpu_benchmark(attention_bench gpu/cuda/bench/attention_bench.cu lamella_gpu)
lamella_gpu_benchmark(gemm_bench gpu/cuda/bench/gemm_bench.cu lamella_gpu CUDA::cublasLt)
lamella_gpu_benchmark(fhbn_bench net/rdma/fhbn_bench.cu lamella_net)
lamella_gpu_benchmark(step_bench gpu/cuda/bench/step_bench.cpp lamella_gpu)
