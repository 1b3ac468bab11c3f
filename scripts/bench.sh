#!/usr/bin/env bash
# Runs the benchmarks of a build folder and writes docs/benchmarks.
#
#   scripts/bench.sh BUILD_FOLDER SECONDS[,SECONDS...]
set -euo pipefail

cd "$(dirname "${BASH_SOURCE[0]}")/.."
build=$1
seconds=$2

# $1: program, $2: file for the results as measured
measure() {
    echo "Measuring with $1 (results: $2)"
    "$build/bench/$1" --benchmark_repetitions=3 --benchmark_min_time=0.3 \
        --benchmark_report_aggregates_only=true \
        --benchmark_out="$2" --benchmark_out_format=json >"$2.log" 2>&1 || {
        tail -n 40 "$2.log" >&2
        exit 1
    }
}

measure newscaster_composite_bench "$build/composite.json"
measure newscaster_stages_bench "$build/stages.json"
"$build/bench/newscaster_cadence_bench" --output-dir "${BENCH_OUTPUT:-docs/benchmarks}"
"$build/bench/newscaster_render_bench" --seconds "$seconds" --program "$build/newscaster" \
    --composite "$build/composite.json" --stages "$build/stages.json" \
    --output-dir "${BENCH_OUTPUT:-docs/benchmarks}"
