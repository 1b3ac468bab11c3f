#!/usr/bin/env bash
# Installs this build to a fresh prefix, builds the examples against it with find_package, runs them
# and the installed program from another folder.
#
#   install_test.sh BUILD_DIR SOURCE_DIR
set -euo pipefail

build=$1
source=$2
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
prefix=$work/prefix

cmake --install "$build" --prefix "$prefix" >"$work/install.log"
cmake -S "$source/examples" -B "$work/examples" -G Ninja -DCMAKE_BUILD_TYPE=Release \
    -DCMAKE_PREFIX_PATH="$prefix" >"$work/configure.log"
cmake --build "$work/examples" >"$work/build.log" || { cat "$work/build.log"; exit 1; }

cd "$work"
share=$prefix/share/newscaster
cpp=$("$work/examples/count_frames" "$share/packs/studio" "$share/avatars/marcus")
[[ $cpp == "25 frames" ]] || { echo "count_frames printed: $cpp"; exit 1; }

# 44 header bytes and 6400 samples: ten frames.
head -c $((44 + 2 * 6400)) "$source/examples/speech.wav" >short.wav
c=$("$work/examples/render_frames" "$share/packs/studio" "$share/avatars/mei" short.wav out.nv12)
[[ $c == "10 frames" ]] || { echo "render_frames printed: $c"; exit 1; }
[[ $(stat -c %s out.nv12) == $((10 * 1920 * 1080 * 3 / 2)) ]] || { echo "out.nv12 has another size"; exit 1; }

code=0
"$work/examples/render_frames" "$share/packs/none" "$share/avatars/mei" short.wav bad.nv12 \
    2>message || code=$?
[[ $code == 3 ]] || { echo "a missing pack gave exit code $code"; exit 1; }
grep -q none message

"$prefix/bin/newscaster" render short.wav -o installed.mp4 --quiet
[[ -s installed.mp4 ]]
if [[ -d $source/detectors ]]; then
    "$prefix/bin/newscaster" avatar preview marcus -o seen --audio short.wav |
        grep -q "points of the face" || { echo "the installed detectors were not found"; exit 1; }
fi
echo "installed package works"
