# Headers of libraries that a build does without. Sources ask for a definition of the command line, never with
# __has_include: ninja and ccache compare the files that a compiler has read and cannot see that one was absent, so
# a machine that has the header would be given the object of one that had not.

# lamella_optional_header(HEADER DEFINITION FILES...): FILES are compiled with DEFINITION where HEADER is found.
function(lamella_optional_header header definition)
  find_path(found "${header}" HINTS ${CUDAToolkit_INCLUDE_DIRS} NO_CACHE)
  if(found)
    set_property(SOURCE ${ARGN} APPEND PROPERTY COMPILE_DEFINITIONS "${definition}")
  endif()
endfunction()
