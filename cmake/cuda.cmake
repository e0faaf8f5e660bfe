# Kernels for NVIDIA GPUs: the .cu files below src/, compiled where ggml computes on such GPUs too (`make CUDA=1`), or with
# KNAP_CUDA_KERNELS=ON, which needs nvcc but no GPU (`make check-cuda`). In other builds src/kernels/cuda/no_cuda.cpp takes
# their place. CMAKE_CUDA_ARCHITECTURES, or CUDA_ARCHS in the environment ("90-real", "80;86;90"), says which GPUs to compile
# for; by default those of this machine. The kernels need compute capability 8.0: GPUs before that are left to ggml.
option(KNAP_CUDA_KERNELS "compile the CUDA kernels even if ggml was built without CUDA" OFF)

# The architectures of this machine's GPUs: "90-real;86-real".
function(knap_find_gpus RESULT)
    execute_process(COMMAND nvidia-smi --query-gpu=compute_cap --format=csv,noheader
                    OUTPUT_VARIABLE capabilities OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET RESULT_VARIABLE status)
    set(architectures "")
    if(status EQUAL 0)
        string(REGEX MATCHALL "[0-9]+\\.[0-9]" architectures "${capabilities}")
        list(TRANSFORM architectures REPLACE "\\." "")
        list(TRANSFORM architectures APPEND "-real")
        list(REMOVE_DUPLICATES architectures)
    endif()
    set(${RESULT} ${architectures} PARENT_SCOPE)
endfunction()

set(KNAP_HAS_CUDA_KERNELS OFF)
if(GGML_CUDA OR KNAP_CUDA_KERNELS)
    set(KNAP_CUDA_ARCHITECTURES ${CMAKE_CUDA_ARCHITECTURES})
    if(NOT KNAP_CUDA_ARCHITECTURES)
        set(KNAP_CUDA_ARCHITECTURES $ENV{CUDA_ARCHS})
    endif()
    if(NOT KNAP_CUDA_ARCHITECTURES)
        knap_find_gpus(KNAP_CUDA_ARCHITECTURES)
    endif()
    if(NOT KNAP_CUDA_ARCHITECTURES)
        set(KNAP_CUDA_ARCHITECTURES 90-real)
    endif()
    list(FILTER KNAP_CUDA_ARCHITECTURES EXCLUDE REGEX "^[1-7][0-9](-|$)")
    # Registers move between the warps of a block only in code for exactly this architecture.
    list(TRANSFORM KNAP_CUDA_ARCHITECTURES REPLACE "^90(-|$)" "90a\\1")
    if(KNAP_CUDA_ARCHITECTURES)
        set(KNAP_HAS_CUDA_KERNELS ON)
    else()
        message(STATUS "No CUDA kernels: they need GPUs of compute capability 8.0 or later")
    endif()
endif()
if(NOT KNAP_HAS_CUDA_KERNELS)
    return()
endif()

message(STATUS "CUDA kernels for ${KNAP_CUDA_ARCHITECTURES}")
set(CMAKE_CUDA_ARCHITECTURES ${KNAP_CUDA_ARCHITECTURES} CACHE STRING "GPUs to compile for" FORCE)
if(NOT CMAKE_CUDA_HOST_COMPILER)
    set(CMAKE_CUDA_HOST_COMPILER ${CMAKE_CXX_COMPILER})
endif()
if(CCACHE AND NOT CMAKE_CUDA_COMPILER_LAUNCHER)
    set(CMAKE_CUDA_COMPILER_LAUNCHER ${CCACHE})
endif()
enable_language(CUDA)
find_package(CUDAToolkit REQUIRED)
set(CMAKE_CUDA_STANDARD 20)
if(NOT CMAKE_CUDA20_STANDARD_COMPILE_OPTION)
    # CMake 3.25 does not know how to ask nvcc for it.
    set(CMAKE_CUDA20_STANDARD_COMPILE_OPTION -std=c++20)
    set(CMAKE_CUDA20_EXTENSION_COMPILE_OPTION -std=c++20)
endif()

# Objects, so that the library and those who link it need no CUDA language. Multiply-adds are contracted as the compiler
# likes: where bits matter, kernels name the instruction.
file(GLOB_RECURSE KNAP_CUDA_SOURCES CONFIGURE_DEPENDS src/*.cu)
add_library(cuda_kernels OBJECT ${KNAP_CUDA_SOURCES})
target_include_directories(cuda_kernels PRIVATE include src)
target_compile_options(cuda_kernels PRIVATE -O3 --expt-relaxed-constexpr -Xcompiler=-Wall,-Wextra)
target_link_libraries(cuda_kernels PRIVATE ggml::ggml-base)

list(REMOVE_ITEM KNAP_SOURCES ${PROJECT_SOURCE_DIR}/src/kernels/cuda/no_cuda.cpp)

# Adds the kernels to a library, with the static runtime: the program needs no CUDA installation but the driver for them.
function(knap_add_cuda_kernels TARGET)
    target_sources(${TARGET} PRIVATE $<TARGET_OBJECTS:cuda_kernels>)
    target_link_libraries(${TARGET} PRIVATE $<BUILD_INTERFACE:CUDA::cudart_static>)
endfunction()
