# The built-in prompts of `knap bench` (cli/bench/texts), embedded in one source file.
foreach(name document source)
    set(file cli/bench/texts/${name}.txt)
    string(TOUPPER KNAP_${name}_TEXT variable)
    file(READ ${PROJECT_SOURCE_DIR}/${file} ${variable})
    set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${file})
endforeach()
configure_file(cmake/builtin_texts.cpp.in ${CMAKE_BINARY_DIR}/generated/builtin_texts.cpp @ONLY)
