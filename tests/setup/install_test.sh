#!/usr/bin/env bash
# Installs a build, moves the installed tree, runs the program there, and builds a project with it.
#   install_test.sh BUILD_FOLDER
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
build=$1
temp=$(mktemp -d)
trap 'rm -rf "$temp"' EXIT
installed=$temp/moved

fail() { printf 'FAILED: %s\n' "$*" >&2; exit 1; }

uses_own_libraries() { # program
    local elsewhere
    elsewhere=$(ldd "$1" | grep -E 'lib(ggml|llama)' | grep -vF " $installed/" || true)
    [ -z "$elsewhere" ] || fail "$1 uses libraries from outside the installed tree: $elsewhere"
}

cmake --install "$build" --prefix "$temp/installed" > "$temp/log"
mv "$temp/installed" "$installed"

for file in include/knap/knap.h share/bash-completion/completions/knap share/zsh/site-functions/_knap \
    share/fish/vendor_completions.d/knap.fish share/doc/knap/LICENSE share/doc/knap/THIRD_PARTY.md; do
    [ -f "$installed/$file" ] || fail "$file is not installed"
done

"$installed/bin/knap" --version
uses_own_libraries "$installed/bin/knap"
"$installed/bin/knap" make-model --shape tiny-llama --type F32 -o "$temp/tiny.gguf"

CMAKE_PREFIX_PATH=$installed cmake -S "$here/consumer" -B "$temp/consumer" \
    -DEXAMPLE="$here/../../examples/minimal.cpp" > "$temp/log"
! grep -r "$build" "$installed/lib/cmake" || fail "the CMake package names the build folder"
cmake --build "$temp/consumer"
uses_own_libraries "$temp/consumer/app"
"$temp/consumer/app" "$temp/tiny.gguf"
