# Writes OUT, a C++ file that knows the commit of these sources, when that has changed. Run with -P
# at every build, since a commit changes no file that CMake would look at.
# cmake -DSOURCE=folder -DOUT=file -P commit.cmake
get_filename_component(above "${SOURCE}" DIRECTORY) # a history that begins there is not ours
execute_process(COMMAND "${CMAKE_COMMAND}" -E env "GIT_CEILING_DIRECTORIES=${above}" git -C "${SOURCE}" describe --always --dirty --abbrev=12 --exclude=*
  OUTPUT_VARIABLE commit OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET RESULT_VARIABLE failed)
if(failed) # sources without their history: who builds them may know it
  set(commit "$ENV{LAMELLA_COMMIT}")
endif()
if(EXISTS "${OUT}")
  file(READ "${OUT}" known)
  if(known MATCHES "\"${commit}\"")
    return()
  endif()
endif()
string(TIMESTAMP date "%Y-%m-%dT%H:%M:%SZ" UTC) # or of SOURCE_DATE_EPOCH
file(WRITE "${OUT}" "#include \"actors/shared/build_info.hpp\"

namespace lamella::actors {

std::string_view build_commit() { return \"${commit}\"; }
std::string_view build_date() { return \"${date}\"; }

} // namespace lamella::actors
")
