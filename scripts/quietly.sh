#!/usr/bin/env bash
# Runs a command with its output in a log; shows the log only when the command fails.
#
#   scripts/quietly.sh LABEL LOG COMMAND...
set -uo pipefail

label=$1
log=$2
shift 2
mkdir -p "$(dirname "$log")"
echo "$label"
"$@" >"$log" 2>&1 </dev/null
code=$?
if [[ $code != 0 ]]; then
    echo "failed (exit code $code): $*" >&2
    tail -n 80 "$log" >&2
    echo "whole log: $log" >&2
fi
exit "$code"
