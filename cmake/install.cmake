# What `cmake --install` puts where, and the packages that `deploy/package` makes of it:
#   program  the program, its data, pages of the manual, completions, samples, licences
#   units    of systemd; not in the .tar.gz, which may be unpacked anywhere
#   system   of the .deb alone: /etc/lamella/lamella.yaml and the user that the units run as
#   cuda     the GPU part, where it was built; in no package, since those depend on nothing of NVIDIA's
#   bundle   of the .tar.gz alone: the shared libraries of the program, so that it runs from any folder
include(GNUInstallDirs)
set(CMAKE_INSTALL_DEFAULT_COMPONENT_NAME program)

# Libraries of the bundle, if there are any, go before the system's; also for what they need themselves,
# which is why it is the older kind of path.
set_target_properties(lamella PROPERTIES
  BUILD_WITH_INSTALL_RPATH TRUE INSTALL_RPATH "$ORIGIN/../lib/lamella")
target_link_options(lamella PRIVATE -Wl,--disable-new-dtags)

install(TARGETS lamella RUNTIME DESTINATION "${CMAKE_INSTALL_BINDIR}")
if(TARGET lamella_cuda) # the program looks for it there
  install(TARGETS lamella_cuda LIBRARY DESTINATION lib COMPONENT cuda OPTIONAL)
endif()
file(GLOB lamella_traces CONFIGURE_DEPENDS "${LAMELLA_DATA}/*.gz" "${LAMELLA_DATA}/*.xz")
install(FILES ${lamella_traces} "${LAMELLA_DATA}/README.md" DESTINATION share/lamella/data)
set(lamella_doc share/doc/lamella)
file(GLOB lamella_samples CONFIGURE_DEPENDS "${CMAKE_SOURCE_DIR}/config/*.yaml")
install(FILES ${lamella_samples} DESTINATION "${lamella_doc}/examples")
install(FILES LICENSE NOTICE README.md DESTINATION "${lamella_doc}")
install(DIRECTORY docs/ DESTINATION "${lamella_doc}/docs")
install(FILES deploy/README.md deploy/alerts.yml deploy/prometheus.yml DESTINATION "${lamella_doc}/deploy")
install(DIRECTORY deploy/grafana DESTINATION "${lamella_doc}/deploy")

# Units with the folder that the program is installed in.
install(CODE "
  foreach(unit lamella.service lamella-worker@.service)
    file(READ \"${CMAKE_SOURCE_DIR}/deploy/\${unit}\" text)
    # The head of a unit says how to install it by hand.
    string(REGEX REPLACE \"^(#[^\\n]*\\n)+\" \"\" text \"\${text}\")
    string(REPLACE /usr/local/bin/ \"\${CMAKE_INSTALL_PREFIX}/${CMAKE_INSTALL_BINDIR}/\" text \"\${text}\")
    file(WRITE \"${CMAKE_BINARY_DIR}/installed/\${unit}\" \"\${text}\")
  endforeach()" COMPONENT units)
install(FILES "${CMAKE_BINARY_DIR}/installed/lamella.service"
  "${CMAKE_BINARY_DIR}/installed/lamella-worker@.service" DESTINATION lib/systemd/system
  COMPONENT units)

# What the program says of itself: pages of the manual (where help2man is installed) and completions; and the
# licences of libraries that are compiled into it.
install(CODE "
  execute_process(COMMAND \"${CMAKE_SOURCE_DIR}/cmake/write_pages\" \"$<TARGET_FILE:lamella>\"
    \"${CMAKE_BINARY_DIR}/installed/pages\" COMMAND_ERROR_IS_FATAL ANY)")
install(DIRECTORY "${CMAKE_BINARY_DIR}/installed/pages/" DESTINATION share)
foreach(package libcli11-dev libboost1.81-dev libspdlog-dev libfmt-dev libcaf-dev libprotozero-dev)
  install(FILES "/usr/share/doc/${package}/copyright" DESTINATION "${lamella_doc}/licences"
    RENAME "${package}" OPTIONAL)
endforeach()

# /etc of a .deb, whatever its prefix is; a configuration that an operator has changed is dpkg's to keep.
install(FILES config/laptop.yaml DESTINATION /etc/lamella RENAME lamella.yaml COMPONENT system EXCLUDE_FROM_ALL)
install(FILES deploy/debian/copyright DESTINATION "${lamella_doc}" COMPONENT system EXCLUDE_FROM_ALL)
install(FILES deploy/debian/lamella.conf DESTINATION lib/sysusers.d COMPONENT system EXCLUDE_FROM_ALL)

# All libraries but those of the C library, which belong to the kernel's loader, with their licences.
install(CODE "
  file(GET_RUNTIME_DEPENDENCIES EXECUTABLES \"$<TARGET_FILE:lamella>\" RESOLVED_DEPENDENCIES_VAR found
    PRE_EXCLUDE_REGEXES \"^(ld-linux.*|lib(c|m|dl|rt|pthread|resolv)\\\\.so.*)\$\")
  file(INSTALL \${found} DESTINATION \"\${CMAKE_INSTALL_PREFIX}/lib/lamella\" FOLLOW_SYMLINK_CHAIN)
  foreach(library \${found})
    file(REAL_PATH \"\${library}\" library)
    get_filename_component(name \"\${library}\" NAME) # dpkg may know it as /lib/..., not /usr/lib/...
    execute_process(COMMAND dpkg-query -S \"*/${CMAKE_LIBRARY_ARCHITECTURE}/\${name}\" OUTPUT_VARIABLE owner ERROR_QUIET)
    string(REGEX REPLACE \"[:,].*\" \"\" owner \"\${owner}\")
    file(GLOB licence \"/usr/share/doc/\${owner}/copyright\")
    if(licence)
      file(INSTALL \${licence} DESTINATION \"\${CMAKE_INSTALL_PREFIX}/${lamella_doc}/licences\" RENAME \"\${owner}\")
    endif()
  endforeach()" COMPONENT bundle EXCLUDE_FROM_ALL)

set(CPACK_PACKAGE_NAME lamella)
set(CPACK_PACKAGE_VENDOR "the Lamella authors")
set(CPACK_PACKAGE_CONTACT "the Lamella authors <lamella@localhost>")
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "serves large language models with model-attention disaggregation")
set(CPACK_PACKAGE_DESCRIPTION "Model replicas hold the weights and run everything but attention, attention shards
hold the KV cache and run attention. One program with an OpenAI-compatible API.")
set(CPACK_RESOURCE_FILE_LICENSE "${CMAKE_SOURCE_DIR}/LICENSE")
set(CPACK_STRIP_FILES ON)
set(CPACK_PROJECT_CONFIG_FILE "${CMAKE_SOURCE_DIR}/cmake/package_options.cmake")
set(CPACK_DEBIAN_PACKAGE_SECTION net)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_PACKAGE_DEPENDS procps) # /bin/kill, by which systemd reloads the service
# Looked for when the program starts: adapters for RDMA.
set(CPACK_DEBIAN_PACKAGE_SUGGESTS "ibverbs-providers, libibverbs1")
# `lamella model fetch` asks pip.
set(CPACK_DEBIAN_PACKAGE_RECOMMENDS "python3-pip")
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_CONTROL_STRICT_PERMISSION ON)
set(CPACK_DEBIAN_PACKAGE_CONTROL_EXTRA "${CMAKE_SOURCE_DIR}/deploy/debian/conffiles"
  "${CMAKE_SOURCE_DIR}/deploy/debian/postinst" "${CMAKE_SOURCE_DIR}/deploy/debian/prerm"
  "${CMAKE_SOURCE_DIR}/deploy/debian/postrm")
include(CPack)
