# Compiles each folder of sources as one file. Headers are read once, which makes a first build three times as fast. Names
# in anonymous namespaces must therefore be unique within a folder. KNAP_UNITY=OFF compiles file by file, which is better
# while editing a few files (preset debug) and for tools that need a compile command for every file.
option(KNAP_UNITY "compile each folder of sources as one file" ON)

function(knap_compile_by_folder TARGET)
    if(NOT KNAP_UNITY)
        return()
    endif()
    get_target_property(sources ${TARGET} SOURCES)
    list(FILTER sources INCLUDE REGEX "\\.cpp$")  # not CUDA
    foreach(source ${sources})
        cmake_path(ABSOLUTE_PATH source)
        cmake_path(GET source PARENT_PATH folder)
        cmake_path(RELATIVE_PATH folder BASE_DIRECTORY ${PROJECT_SOURCE_DIR} OUTPUT_VARIABLE name)
        string(MAKE_C_IDENTIFIER "${name}" group)
        set_property(SOURCE ${source} PROPERTY UNITY_GROUP ${group})
    endforeach()
    set_target_properties(${TARGET} PROPERTIES UNITY_BUILD ON UNITY_BUILD_MODE GROUP)
    if(CMAKE_CXX_COMPILER_ID STREQUAL GNU)
        # GCC takes the included source files for headers, and warns about classes with members of file-local types.
        target_compile_options(${TARGET} PRIVATE -Wno-subobject-linkage)
    endif()
endfunction()
