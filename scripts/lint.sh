#!/usr/bin/env bash
# Format check, then clang-tidy with the compile commands of a configured build folder.
#
#   scripts/lint.sh BUILD_FOLDER         every file
#   scripts/lint.sh BUILD_FOLDER REF     only files that differ from git revision REF
set -euo pipefail

cd "$(dirname "${BASH_SOURCE[0]}")/.."
build=$1
ref=${2:-}
scripts/check-format.sh

mapfile -t files < <(sed -n 's/^ *"file": "\(.*\)",\{0,1\}$/\1/p' "$build/compile_commands.json" |
    grep "^$PWD/" | grep -v "^$PWD/build" | sort -u)
if [[ -n $ref ]]; then
    mapfile -t changed < <(git diff --name-only --diff-filter=d "$ref" -- '*.cpp' '*.c' |
        sed "s|^|$PWD/|" | sort -u)
    mapfile -t files < <(comm -12 <(printf '%s\n' "${files[@]}") <(printf '%s\n' "${changed[@]}"))
fi
if [[ ${#files[@]} == 0 || -z ${files[0]} ]]; then
    echo "tidy: nothing to check"
    exit 0
fi
echo "tidy: checking ${#files[@]} files"
# clang-tidy counts suppressed warnings on standard error; findings come on standard output.
log=$build/tidy.log
if ! printf '%s\0' "${files[@]}" |
    xargs -0 -n 2 -P "$(nproc)" "${CLANG_TIDY:-clang-tidy}" --quiet -p "$build" \
        >"$log" 2>"$log.err"; then
    grep -E ': (warning|error): ' "$log" | sed "s|^$PWD/||" | sort -u >&2 || tail -n 20 "$log.err" >&2
    echo "tidy: findings above; details in $log" >&2
    exit 1
fi
echo "tidy: ${#files[@]} files are clean"
