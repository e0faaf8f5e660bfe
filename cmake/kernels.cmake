# CPU kernels are compiled for the instruction set in their file's name and chosen at run time, so the program as a whole
# runs on any machine of its architecture. Contraction is off: whether a product and a sum become one rounding must not
# depend on how the compiler arranged a loop.
file(GLOB KNAP_KERNEL_SOURCES CONFIGURE_DEPENDS src/kernels/*.cpp)
set_property(SOURCE ${KNAP_KERNEL_SOURCES} APPEND PROPERTY COMPILE_OPTIONS -O3 -ffp-contract=off)

set(KNAP_AVX2_SOURCES ${KNAP_KERNEL_SOURCES})
list(FILTER KNAP_AVX2_SOURCES INCLUDE REGEX "_avx2\\.cpp$")
set(KNAP_AVX512_SOURCES ${KNAP_KERNEL_SOURCES})
list(FILTER KNAP_AVX512_SOURCES INCLUDE REGEX "_avx512\\.cpp$")
if(CMAKE_SYSTEM_PROCESSOR MATCHES "x86_64|AMD64")
    set_property(SOURCE ${KNAP_AVX2_SOURCES} APPEND PROPERTY COMPILE_OPTIONS -mavx2 -mfma -mf16c)
    # GCC 12 sees uninitialised variables in its own AVX-512 header.
    set_property(SOURCE ${KNAP_AVX512_SOURCES} APPEND PROPERTY COMPILE_OPTIONS -mavx512f -mfma -mf16c
                                                                               -Wno-uninitialized)
    if(CMAKE_CXX_COMPILER_ID STREQUAL GNU AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 13)
        # Before version 13 the compiler warns of its own intrinsics (GCC bug 105593).
        set_property(SOURCE ${KNAP_AVX512_SOURCES} APPEND PROPERTY COMPILE_OPTIONS -Wno-maybe-uninitialized)
    endif()
else()
    list(REMOVE_ITEM KNAP_SOURCES ${KNAP_AVX2_SOURCES} ${KNAP_AVX512_SOURCES})
endif()
