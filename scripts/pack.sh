#!/usr/bin/env bash
# The default pack from nothing: corpus, training, export. Run again, it goes on where it was.
#
#   scripts/pack.sh PYTHON FOLDER SPEECH_MINUTES PICTURE_MINUTES
#
# FOLDER/packs/studio and FOLDER/avatars are the result; FOLDER/work holds checkpoints and logs.
set -euo pipefail

cd "$(dirname "${BASH_SOURCE[0]}")/.."
readonly python=$1 folder=$2 speech_minutes=$3 picture_minutes=$4 work=$2/work
mkdir -p "$work"
export PYTHONPATH=$PWD/training
data=$("$python" -c 'import sysconfig; print(sysconfig.get_paths()["purelib"])')
if [[ ! -f $work/corpus.npz ]]; then
    "$python" -m studio voices --minutes 800 -o "$work/corpus.npz"
fi
"$python" -m studio train-speech --corpus "$work/corpus.npz" --work "$work" \
    --minutes "$speech_minutes"
"$python" -m studio train-pictures --makehuman "$data" --work "$work" --minutes "$picture_minutes"
"$python" -m studio export --makehuman "$data" --work "$work" -o "$folder"
