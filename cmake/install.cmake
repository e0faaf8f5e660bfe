# `make install`: the program, the library with its headers and CMake package, and shell completions. Copies the shared
# libraries of ggml and llama into lib/knap, so that the installed tree is self-contained and can be moved.
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)

set(KNAP_PACKAGE_DIR ${CMAKE_INSTALL_LIBDIR}/cmake/knap)
set(KNAP_BACKEND_DIR ${CMAKE_INSTALL_LIBDIR}/knap)

file(RELATIVE_PATH KNAP_BACKEND_FROM_BIN ${CMAKE_INSTALL_FULL_BINDIR} ${CMAKE_INSTALL_FULL_LIBDIR}/knap)
set_target_properties(knap PROPERTIES INSTALL_RPATH "$ORIGIN/${KNAP_BACKEND_FROM_BIN}")
install(TARGETS knap RUNTIME_DEPENDENCY_SET knap_backend)
install(RUNTIME_DEPENDENCY_SET knap_backend PRE_INCLUDE_REGEXES "^lib(ggml|llama\\.)" PRE_EXCLUDE_REGEXES ".*"
        DESTINATION ${KNAP_BACKEND_DIR})
# Not part of that search, because libllama-common does not say where the libraries are that it needs. Those are found
# when the program starts, because the program itself needs them too.
file(GLOB KNAP_LLAMA_COMMON_VERSIONS ${KNAP_LLAMA_COMMON}.?)
foreach(version IN LISTS KNAP_LLAMA_COMMON_VERSIONS)
    cmake_path(GET version FILENAME name)
    file(REAL_PATH ${version} file)
    install(PROGRAMS ${file} DESTINATION ${KNAP_BACKEND_DIR} RENAME ${name})
endforeach()

if(KNAP_HAS_CUDA_KERNELS)
    install(FILES $<TARGET_FILE:CUDA::cudart_static> DESTINATION ${KNAP_BACKEND_DIR})
endif()

install(TARGETS knap_engine EXPORT knap)
install(DIRECTORY include/knap DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} FILES_MATCHING PATTERN "*.h")
install(EXPORT knap FILE knapTargets.cmake NAMESPACE knap:: DESTINATION ${KNAP_PACKAGE_DIR})
configure_package_config_file(cmake/knapConfig.cmake.in ${CMAKE_BINARY_DIR}/knapConfig.cmake
                              INSTALL_DESTINATION ${KNAP_PACKAGE_DIR} PATH_VARS KNAP_BACKEND_DIR)
# docs/stability.md: from 1.0 on only a major version may break a program.
if(PROJECT_VERSION_MAJOR EQUAL 0)
    set(KNAP_COMPATIBILITY SameMinorVersion)
else()
    set(KNAP_COMPATIBILITY SameMajorVersion)
endif()
write_basic_package_version_file(${CMAKE_BINARY_DIR}/knapConfigVersion.cmake COMPATIBILITY ${KNAP_COMPATIBILITY})
install(FILES ${CMAKE_BINARY_DIR}/knapConfig.cmake ${CMAKE_BINARY_DIR}/knapConfigVersion.cmake
        DESTINATION ${KNAP_PACKAGE_DIR})

install(FILES completions/knap.bash DESTINATION ${CMAKE_INSTALL_DATADIR}/bash-completion/completions RENAME knap)
install(FILES completions/_knap DESTINATION ${CMAKE_INSTALL_DATADIR}/zsh/site-functions)
install(FILES completions/knap.fish DESTINATION ${CMAKE_INSTALL_DATADIR}/fish/vendor_completions.d)
install(FILES LICENSE DESTINATION ${CMAKE_INSTALL_DOCDIR})

# What of others is in the program, with its licences. After the program, which names libraries; not whenever it is linked.
set(KNAP_THIRD_PARTY ${CMAKE_BINARY_DIR}/THIRD_PARTY.md)
add_custom_command(
    OUTPUT ${KNAP_THIRD_PARTY}
    COMMAND ${PROJECT_SOURCE_DIR}/deps/licences --program $<TARGET_FILE:knap> -o ${KNAP_THIRD_PARTY}
    DEPENDS deps/licences deps/debian.txt deps/requirements.txt deps/test-requirements.txt
    COMMENT "Listing third-party parts and their licences"
    VERBATIM)
add_custom_target(licences ALL DEPENDS ${KNAP_THIRD_PARTY})
add_dependencies(licences knap)
install(FILES ${KNAP_THIRD_PARTY} DESTINATION ${CMAKE_INSTALL_DOCDIR})
