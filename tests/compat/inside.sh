#!/usr/bin/env bash
# What tests/compat/run does with the package in a fresh system. Lines that begin with "try: " are its report.
set -euo pipefail

fail() { printf 'try: FAILED: %s\n' "$*"; exit 1; }
as_user() { setpriv --reuid=tester --regid=tester --init-groups env HOME=/home/tester "$@"; }

. /etc/os-release
printf 'try: %s, %s\n' "$PRETTY_NAME" "$(dpkg-query -W -f '${Package} ${Version}' libc6)"
apt-get update -qq
apt-get install -qq -y --no-install-recommends /try/knap.deb
printf 'try: installed %s with %s\n' "$(dpkg-query -W -f '${Package} ${Version}' knap)" \
    "$(dpkg-query -W -f '${Package} ' 'libcurl4*' 'libssl3*' 'libstdc++6' | xargs)"

! ldd /usr/bin/knap | grep 'not found' || fail "libraries are missing"
ldd /usr/bin/knap | grep -E 'lib(ggml|llama)' | grep -vF ' /usr/lib/knap/' | grep -vF ' /usr/bin/../lib/knap/' &&
    fail "a library of ggml or llama is not the package's own"
dpkg -L knap | while read -r path; do
    [ -L "$path" ] || [ "$(stat -c '%U:%G' "$path")" = root:root ] || fail "$path does not belong to root"
    [ ! -f "$path" ] || [ -L "$path" ] || case "$(stat -c %a "$path") $path" in
        "755 /usr/bin/knap" | "644 "*) ;;
        *) fail "$path has the mode $(stat -c %a "$path")" ;;
    esac
done
dpkg --verify knap

useradd --create-home tester
cd /home/tester
printf 'try: %s\n' "$(as_user knap --version)"
as_user knap make-model --shape tiny-llama -o tiny.gguf
first=$(as_user knap run -m tiny.gguf -p "Once upon a time" -n 32 --temp 0 --strategy lookup)
second=$(as_user knap run -m tiny.gguf -p "Once upon a time" -n 32 --temp 0 --strategy autoregressive)
[ -n "$first" ] && [ "$first" = "$second" ] || fail "drafts changed the text"
as_user knap info -m tiny.gguf > /dev/null
as_user knap check -m tiny.gguf > check.txt || { cat check.txt; fail "knap check"; }
printf 'try: make-model, run, info and check work\n'

port=$((20000 + RANDOM % 20000))
setpriv --reuid=tester --regid=tester --init-groups env HOME=/home/tester knap serve -m tiny.gguf --port "$port" > serve.txt 2>&1 &
server=$!
for _ in $(seq 300); do # it is 503 until the model is loaded
    health=$(exec 3<> /dev/tcp/127.0.0.1/"$port" && printf 'GET /health HTTP/1.0\r\n\r\n' >&3 && cat <&3) || true
    [[ $health != *"200 OK"* ]] || break
    sleep 0.1
done 2> /dev/null
[[ $health == *"200 OK"* ]] || { cat serve.txt; fail "knap serve does not answer"; }
kill -TERM "$server"
wait "$server" || { code=$?; cat serve.txt; fail "knap serve ends with exit code $code"; }
printf 'try: serve answers and ends\n'

if [ -n "${LIBRARY:-}" ]; then
    apt-get install -qq -y --no-install-recommends cmake make g++
    cmake -S /try/consumer -B /tmp/consumer -DEXAMPLE=/try/minimal.cpp
    cmake --build /tmp/consumer
    /tmp/consumer/app /home/tester/tiny.gguf > /dev/null
    printf 'try: a program with find_package(knap) builds and runs, %s\n' "$(c++ --version | head -n1)"
fi

dpkg -L knap | grep -E '/knap|libknap' > /tmp/files
apt-get remove -qq -y knap
while read -r path; do
    [ ! -e "$path" ] || fail "$path is still there"
done < /tmp/files
printf 'try: removed, nothing is left\n'
