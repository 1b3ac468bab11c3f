#!/usr/bin/env bash
# Runs every step of the default pack's recipe at toy size, then renders one second with the pack.
#
#   scripts/pack_smoke.sh PYTHON NEWSCASTER FOLDER
#
# FOLDER gets the pack, an avatar, checkpoints and the video. What was in it before is removed.
set -euo pipefail

cd "$(dirname "${BASH_SOURCE[0]}")/.."
readonly python=$1 newscaster=$2 folder=$3
data=$("$python" -c 'import sysconfig; print(sysconfig.get_paths()["purelib"])')
rm -rf "$folder"
mkdir -p "$folder"
folder_path=$(cd "$folder" && pwd)
export PYTHONPATH=$PWD/training
"$python" -m pytest -p no:cacheprovider training/tests/test_voices.py training/tests/test_faces.py \
    training/tests/test_studio.py
"$python" -m studio smoke --makehuman "$data" --work "$folder_path/work" -o "$folder_path"
"$newscaster" pack verify "$folder_path/pack"
ffmpeg -v error -t 1 -i examples/speech.wav "$folder_path/second.wav"
"$newscaster" render "$folder_path/second.wav" --pack "$folder_path/pack" \
    -a "$folder_path/avatars/anna" --provider cpu -o "$folder_path/second.mp4"
frames=$(ffprobe -v error -count_frames -select_streams v -show_entries stream=nb_read_frames \
    -of csv=p=0 "$folder_path/second.mp4")
if [[ $frames != 25 ]]; then
    echo "pack_smoke: second.mp4 has $frames frames, wanted 25" >&2
    exit 1
fi
