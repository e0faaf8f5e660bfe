# A program of libFuzzer for every target, and one that writes their seeds: the preset `fuzz`.
if(NOT CMAKE_CXX_COMPILER_ID STREQUAL Clang)
    message(FATAL_ERROR "KNAP_FUZZ needs Clang, which has libFuzzer; found ${CMAKE_CXX_COMPILER_ID}")
endif()

add_library(fuzz_parts STATIC ${KNAP_FUZZ_PARTS})
target_link_libraries(fuzz_parts PUBLIC knap_test_support)

add_executable(fuzz_seeds fuzz/seeds_main.cpp)
target_link_libraries(fuzz_seeds PRIVATE fuzz_parts)
add_custom_target(fuzz_programs DEPENDS fuzz_seeds)

foreach(source ${KNAP_FUZZ_TARGETS})
    string(REGEX REPLACE ".*/(.*)_target\\.cpp" "\\1" name ${source})
    add_library(fuzz_target_${name} OBJECT ${source})
    target_link_libraries(fuzz_target_${name} PRIVATE fuzz_parts)
    target_sources(fuzz_seeds PRIVATE $<TARGET_OBJECTS:fuzz_target_${name}>)

    add_executable(fuzz_${name} fuzz/main.cpp $<TARGET_OBJECTS:fuzz_target_${name}>)
    target_compile_definitions(fuzz_${name} PRIVATE KNAP_FUZZ_TARGET=${name}_target)
    target_link_libraries(fuzz_${name} PRIVATE fuzz_parts)
    target_link_options(fuzz_${name} PRIVATE -fsanitize=fuzzer)
    add_dependencies(fuzz_programs fuzz_${name})
endforeach()
