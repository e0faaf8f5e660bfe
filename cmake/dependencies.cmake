# Finds the dependencies. ggml and libllama come from the prefix that `deps/setup prefix` builds, unless
# CMAKE_PREFIX_PATH (variable or environment) names another one.
if(NOT CMAKE_PREFIX_PATH AND NOT DEFINED ENV{CMAKE_PREFIX_PATH})
    execute_process(COMMAND ${PROJECT_SOURCE_DIR}/deps/setup prefix-path
                    OUTPUT_VARIABLE KNAP_PREFIX OUTPUT_STRIP_TRAILING_WHITESPACE COMMAND_ERROR_IS_FATAL ANY)
    if(NOT EXISTS ${KNAP_PREFIX}/.complete OR NOT EXISTS ${KNAP_PREFIX}/.headers)
        message(FATAL_ERROR "ggml and libllama are not built yet: run `deps/setup prefix` (or `make`), "
                            "or set CMAKE_PREFIX_PATH to where they are installed")
    endif()
    set(CMAKE_PREFIX_PATH ${KNAP_PREFIX})
endif()

find_package(Threads REQUIRED)
# Exactly this version: ggml is at major version 0, and its structs and signatures still change.
find_package(ggml 0.25.3 EXACT CONFIG REQUIRED)
find_package(llama CONFIG REQUIRED)
# llama-common has no CMake package, and llama.cpp does not install its headers (deps/setup does). It promises no
# stable interface: headers and library must come from the same build.
find_library(KNAP_LLAMA_COMMON llama-common REQUIRED)
find_path(KNAP_LLAMA_COMMON_HEADERS llama-common/chat.h REQUIRED)
add_library(knap_llama_common INTERFACE)
target_link_libraries(knap_llama_common INTERFACE ${KNAP_LLAMA_COMMON} llama)
target_include_directories(knap_llama_common SYSTEM INTERFACE ${KNAP_LLAMA_COMMON_HEADERS})
find_package(CLI11 CONFIG REQUIRED)
find_package(nlohmann_json CONFIG REQUIRED)
find_package(Eigen3 3.4 CONFIG REQUIRED)
# Headers only: Beast and Asio.
find_package(Boost 1.74 REQUIRED)
if(KNAP_HUB)
    find_package(CURL 7.85 REQUIRED)
    find_package(OpenSSL 3 REQUIRED COMPONENTS Crypto)
endif()
