#!/usr/bin/env bash
# clang-format over every C++ file of the tree; writes nothing. Exit code 1 names the files.
set -euo pipefail

cd "$(dirname "${BASH_SOURCE[0]}")/.."
formatter=${CLANG_FORMAT:-clang-format}
folders=()
for folder in include src apps tests bench fuzz bindings examples; do
    [[ -d $folder ]] && folders+=("$folder")
done
mapfile -d '' files < <(find "${folders[@]}" -type f \
    \( -name '*.h' -o -name '*.hpp' -o -name '*.c' -o -name '*.cpp' -o -name '*.cu' \) -print0)
if [[ ${#files[@]} == 0 ]]; then
    echo "format: found no C++ file, wanted some below ${folders[*]}" >&2
    exit 1
fi
printf '%s\0' "${files[@]}" | xargs -0 "$formatter" --dry-run -Werror
echo "format: ${#files[@]} files are clean"
