#!/usr/bin/env bash
# Trains the redundant model and its plain counterpart on one GPU: run_redundant.sh MODEL OUT [SECONDS] [WORK]
# MODEL is the default model. OUT receives checkpoints, tables (.json), GGUF files and a log, WORK (default: OUT) the
# corpus, which is written only if it is missing. Each training takes SECONDS (default: 300), both side by side.
# TWINS_OPTIONS may hold further arguments of twins.py, for a try at other sizes.
set -euo pipefail

if [ $# -lt 2 ]; then
    sed -n '2,5s/^# //p' "$0" >&2
    exit 2
fi
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
model=$1 out=$2 seconds=${3:-300} work=${4:-$2}
shape=(--layers 24 --heads 2 --kv-heads 1 --context 8192 --short-context 1024 --rope-base 500000 --batch 8 --windows 16)
export PYTHONUNBUFFERED=1
mkdir -p "$out" "$work"

if [ ! -e "$work/corpus.pt" ]; then
    python3 "$here/corpus.py" --model "$model" --out "$work/corpus.pt" 2>&1 | tee "$work/corpus.log"
fi

train() { # recipe
    local name=bytes-deep-$1
    # shellcheck disable=SC2086 # several arguments
    python3 "$here/twins.py" --corpus "$work/corpus.pt" --recipe "$1" --name "$name" --out "$out" \
        --seconds "$seconds" "${shape[@]}" ${TWINS_OPTIONS:-} &&
        python3 "$here/export.py" "$out/$name.pt" "$out/$name.gguf"
}

log=$out/bytes-deep.log
: > "$log"
train redundant >> "$log" 2>&1 & redundant=$!
train plain >> "$log" 2>&1 & plain=$!
status=0
wait "$redundant" || status=1
wait "$plain" || status=1
tail -n 90 "$log"
exit "$status"
