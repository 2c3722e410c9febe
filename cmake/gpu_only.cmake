# The GPU part alone, for bare machines with the CUDA toolkit (deploy/gpu-check): no library but the
# toolkit's is needed. With doctest's header its tests are built, with Boost's headers step_bench and
# the tests of whole models; `gpu-check --pack` carries both.
set(LAMELLA_CUDA ON)
find_path(LAMELLA_BOOST boost/graph/push_relabel_max_flow.hpp HINTS "${CMAKE_SOURCE_DIR}/carried")
find_path(LAMELLA_DOCTEST doctest/doctest.h HINTS "${CMAKE_SOURCE_DIR}/carried")

file(GLOB model_sources model/*.cpp)
if(NOT LAMELLA_BOOST)
  list(FILTER model_sources EXCLUDE REGEX "/(boost_json|json|min_cut)\\.cpp$")
endif()
# Nothing here reads text, which would need ICU.
list(FILTER model_sources EXCLUDE REGEX
  "/(jinja_.*|chat_template|pre_tokenizer|tokenizer|bpe|detokenizer|load)\\.cpp$")
add_library(lamella_model STATIC ${model_sources})
target_link_libraries(lamella_model PUBLIC lamella_flags)

file(GLOB gpu_sources gpu/*.cpp gpu/kernels/*.cpp)
add_library(lamella_gpu STATIC ${gpu_sources} gpu/cuda/attention_plan.cpp)
target_link_libraries(lamella_gpu PUBLIC lamella_model ${CMAKE_DL_LIBS})

file(GLOB mlx5_sources net/mlx5/*.cpp)
add_library(lamella_net STATIC ${mlx5_sources})
target_link_libraries(lamella_net PUBLIC lamella_gpu)
include(kernel_flags)

include(cuda)
add_custom_target(gpu_only ALL)
add_dependencies(gpu_only attention_bench gemm_bench fhbn_bench)
if(LAMELLA_BOOST)
  target_include_directories(lamella_model SYSTEM PUBLIC ${LAMELLA_BOOST})
  add_dependencies(gpu_only step_bench)
endif()
if(LAMELLA_DOCTEST)
  file(GLOB cuda_tests tests/gpu/cuda/*_test.cu)
  if(LAMELLA_BOOST)
    file(GLOB model_tests tests/gpu/cuda/*_test.cpp)
  endif()
  add_executable(test_cuda tests/main.cpp ${cuda_tests} ${model_tests})
  target_link_libraries(test_cuda PRIVATE lamella_net lamella_cuda CUDA::cudart_static)
  target_compile_options(test_cuda PRIVATE
    "$<$<COMPILE_LANGUAGE:CUDA>:--expt-relaxed-constexpr;${cuda_warnings}>")
  add_executable(test_cuda_host tests/main.cpp ${cuda_host_tests})
  target_include_directories(test_cuda_host SYSTEM PRIVATE ${CUDAToolkit_INCLUDE_DIRS})
  target_link_libraries(test_cuda_host PRIVATE lamella_gpu)
  foreach(program test_cuda test_cuda_host)
    target_include_directories(${program} SYSTEM PRIVATE ${LAMELLA_DOCTEST})
    set_target_properties(${program} PROPERTIES RUNTIME_OUTPUT_DIRECTORY "${CMAKE_BINARY_DIR}")
  endforeach()
endif()
