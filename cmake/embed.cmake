# Embeds files in a target: knap_embed(TARGET FUNCTION FOLDER FILE...) adds a source that defines
#     std::span<const EmbeddedFile> knap::FUNCTION();      // serve/embedded_file.h; some header of ours declares it
# with the files, named relative to FOLDER, in the order given. FOLDER is relative to the project. A changed file is embedded
# again by the next build.
function(knap_embed target function folder)
    set(source ${CMAKE_BINARY_DIR}/generated/${function}.cpp)
    set(paths ${ARGN})
    list(TRANSFORM paths PREPEND ${PROJECT_SOURCE_DIR}/${folder}/)
    string(REPLACE ";" "," files "${ARGN}")
    add_custom_command(
        OUTPUT ${source}
        COMMAND ${CMAKE_COMMAND} -D FUNCTION=${function} -D FOLDER=${PROJECT_SOURCE_DIR}/${folder} -D FILES=${files}
                -D SOURCE=${source} -P ${PROJECT_SOURCE_DIR}/cmake/embed.cmake
        DEPENDS ${paths} ${PROJECT_SOURCE_DIR}/cmake/embed.cmake
        COMMENT "Embedding the files of ${folder}"
        VERBATIM)
    target_sources(${target} PRIVATE ${source})
endfunction()

# As a script, called by the command above: writes the source. Arrays of bytes, because string literals have limits.
if(CMAKE_SCRIPT_MODE_FILE)
    string(REPLACE "," ";" files "${FILES}")
    set(text "#include <span>\n\n#include \"serve/embedded_file.h\"\n\nnamespace knap {\nnamespace {\n\n")
    set(rows "")
    set(n 0)
    foreach(file IN LISTS files)
        file(READ ${FOLDER}/${file} bytes HEX)
        string(REGEX REPLACE "(................................)" "\\1\n" bytes "${bytes}")
        string(REGEX REPLACE "([0-9a-f][0-9a-f])" "0x\\1," bytes "${bytes}")
        string(APPEND text "// ${file}\nconstexpr unsigned char kFile${n}[] = {\n${bytes}0};\n\n")
        string(APPEND rows "    {\"${file}\", {reinterpret_cast<const char*>(kFile${n}), sizeof kFile${n} - 1}},\n")
        math(EXPR n "${n} + 1")
    endforeach()
    string(APPEND text "const EmbeddedFile kFiles[] = {\n${rows}};\n\n}  // namespace\n\n"
                       "std::span<const EmbeddedFile> ${FUNCTION}();\n"
                       "std::span<const EmbeddedFile> ${FUNCTION}() {\n    return kFiles;\n}\n\n}  // namespace knap\n")
    file(WRITE ${SOURCE} "${text}")
endif()
