#!/usr/bin/env bash
# Runs every fuzz target of a build folder for some seconds each.
#
#   scripts/fuzz.sh BUILD_FOLDER SECONDS
#
# A target is an executable named fuzz_<name>; its seeds are in fuzz/corpus/<name>, its dictionary is
# fuzz/<name>.dict or else fuzz/json.dict. New inputs go to BUILD_FOLDER/corpus, what breaks the
# target to BUILD_FOLDER/findings.
set -euo pipefail

cd "$(dirname "${BASH_SOURCE[0]}")/.."
build=$1
seconds=$2
mapfile -t targets < <(find "$build" -type f -name 'fuzz_*' -perm -u+x | sort)
if [[ ${#targets[@]} == 0 ]]; then
    echo "fuzz: found no target below $build" >&2
    exit 1
fi
mkdir -p "$build/findings"
# Short allocation stacks and a small quarantine: the parsers allocate much and live briefly.
export ASAN_OPTIONS=malloc_context_size=4:quarantine_size_mb=16${ASAN_OPTIONS:+:$ASAN_OPTIONS}
for target in "${targets[@]}"; do
    name=$(basename "$target")
    work="$build/corpus/$name"
    mkdir -p "$work"
    folders=("$work")
    [[ -d fuzz/corpus/${name#fuzz_} ]] && folders+=("fuzz/corpus/${name#fuzz_}")
    dictionary=fuzz/json.dict
    [[ -f fuzz/${name#fuzz_}.dict ]] && dictionary=fuzz/${name#fuzz_}.dict
    echo "fuzz: $name for $seconds s"
    if ! "$target" -max_total_time="$seconds" -rss_limit_mb=2048 -timeout=10 -print_final_stats=1 \
        -dict="$dictionary" -artifact_prefix="$build/findings/$name-" "${folders[@]}" \
        >"$build/$name.log" 2>&1; then
        tail -n 40 "$build/$name.log" >&2
        exit 1
    fi
    grep 'number_of_executed_units' "$build/$name.log" || true
done
