# CPU kernels are compiled for the instruction set in their file's name and chosen at run time, so the program runs on
# any machine of its architecture. Contraction is off: whether a multiply-add rounds once or twice must not depend on how
# the compiler arranges a loop.
set(KNAP_KERNEL_SOURCES ${KNAP_SOURCES})
list(FILTER KNAP_KERNEL_SOURCES INCLUDE REGEX "/src/kernels/")
set_property(SOURCE ${KNAP_KERNEL_SOURCES} APPEND PROPERTY COMPILE_OPTIONS -O3 -ffp-contract=off)

# Attention prefetches the rows needed next, also where there are none: from an address near null. Only Clang's sanitizer
# reports that.
if(KNAP_SANITIZE AND CMAKE_CXX_COMPILER_ID STREQUAL Clang)
    set(KNAP_ATTENTION_SOURCES ${KNAP_KERNEL_SOURCES})
    list(FILTER KNAP_ATTENTION_SOURCES INCLUDE REGEX "/attention/attention_")
    set_property(SOURCE ${KNAP_ATTENTION_SOURCES} APPEND PROPERTY COMPILE_OPTIONS -fno-sanitize=pointer-overflow)
endif()

# Compiles the sources whose names end in _NAME with the given options, or leaves them out on architectures that do not
# match.
function(knap_kernels_for ARCHITECTURE NAME)
    set(sources ${KNAP_KERNEL_SOURCES})
    list(FILTER sources INCLUDE REGEX "_${NAME}\\.cpp$")
    if(CMAKE_SYSTEM_PROCESSOR MATCHES "^(${ARCHITECTURE})$")
        set_property(SOURCE ${sources} APPEND PROPERTY COMPILE_OPTIONS ${ARGN})
    else()
        list(REMOVE_ITEM KNAP_SOURCES ${sources})
        set(KNAP_SOURCES ${KNAP_SOURCES} PARENT_SCOPE)
    endif()
endfunction()

set(KNAP_AVX2 -mavx2 -mfma -mf16c)
# Before version 13, GCC warns about uninitialised variables in its own AVX-512 header (GCC bug 105593).
set(KNAP_AVX512 -mavx512f -mavx512bw -mavx512vl -mavx512vnni -mfma -mf16c -Wno-uninitialized)
if(CMAKE_CXX_COMPILER_ID STREQUAL GNU AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 13)
    list(APPEND KNAP_AVX512 -Wno-maybe-uninitialized)
endif()
knap_kernels_for("x86_64|AMD64" avx2 ${KNAP_AVX2})
knap_kernels_for("x86_64|AMD64" avxvnni ${KNAP_AVX2} -mavxvnni)
knap_kernels_for("x86_64|AMD64" avx512 ${KNAP_AVX512})
knap_kernels_for("x86_64|AMD64" amx ${KNAP_AVX512})
knap_kernels_for("aarch64|arm64" neon -march=armv8.2-a+dotprod)
