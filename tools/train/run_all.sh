#!/usr/bin/env bash
# Trains everything on one GPU: run_all.sh MODEL OUT [WORK]
# MODEL is the default model. OUT receives checkpoints, tables (.json) and logs, WORK (default: OUT) the corpus.
set -euo pipefail

if [ $# -lt 2 ]; then
    sed -n '2,3s/^# //p' "$0" >&2
    exit 2
fi
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
model=$1 out=$2 work=${3:-$2}
export PYTHONUNBUFFERED=1
mkdir -p "$out" "$work"

python3 "$here/corpus.py" --model "$model" --out "$work/corpus.pt" 2>&1 | tee "$out/corpus.log"

train_twin() { # recipe
    python3 "$here/twins.py" --corpus "$work/corpus.pt" --recipe "$1" --out "$out" > "$out/$1.log" 2>&1
}

# In parallel: none of them uses a whole GPU.
train_twin layerskip & layerskip=$!
train_twin plain & plain=$!
python3 "$here/kangaroo.py" --model "$model" --corpus "$work/corpus.pt" --out "$out" 2>&1 | tee "$out/kangaroo.log"
wait "$layerskip"
wait "$plain"
tail -n 12 "$out/layerskip.log" "$out/plain.log"
