# The built-in texts of `knap bench`: documents and sources of this repository, embedded in one source file.
set(KNAP_TEXT_DOCUMENTS docs/architecture.md docs/strategies.md docs/ggml-facts.md docs/profile.md README.md)
set(KNAP_TEXT_SOURCES
    src/decode/round.cpp src/decode/drafter.cpp src/decode/verifier.cpp src/decode/knapspec/knapspec.cpp
    src/decode/knapspec/plan_scout.cpp src/decode/knapspec/plan_pool.cpp src/decode/knapspec_paper/knapspec_paper.cpp src/decode/swift/swift.cpp
    src/decode/del/del.cpp src/search/knapsack.cpp src/search/cost/cost_model.cpp src/graph/forward.cpp
    src/graph/plan_text.cpp src/runtime/generation.cpp src/sampling/sampler.cpp src/text/utf8.cpp)

# Sets `variable` to the concatenated text of the given files.
function(knap_join_texts variable)
    set(joined "")
    foreach(file ${ARGN})
        file(READ ${PROJECT_SOURCE_DIR}/${file} text)
        string(APPEND joined "${text}\n")
        set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${file})
    endforeach()
    set(${variable} "${joined}" PARENT_SCOPE)
endfunction()

knap_join_texts(KNAP_DOCUMENTS_TEXT ${KNAP_TEXT_DOCUMENTS})
knap_join_texts(KNAP_SOURCES_TEXT ${KNAP_TEXT_SOURCES})
configure_file(cmake/builtin_texts.cpp.in ${CMAKE_BINARY_DIR}/generated/builtin_texts.cpp @ONLY)
