#!/usr/bin/env bash
# The engine on a GPU beside PyTorch, full-size Ditto included; pages go to docs/benchmarks.
#
#   bench/gpu.sh BUILD_FOLDER WORK_FOLDER [OUTPUT_FOLDER]
#
# BUILD_FOLDER: configured with -DNEWSCASTER_CUDA=ON -DNEWSCASTER_BUILD_BENCH=ON. WORK_FOLDER takes
# the exported graphs (2.1 GB). PYTHON names an interpreter with PyTorch (CUDA), onnx, safetensors.
set -euo pipefail

cd "$(dirname "${BASH_SOURCE[0]}")/.."
bench=$1/bench
work=$2
output=${3:-docs/benchmarks}
python=${PYTHON:-python3}
results=$work/results
mkdir -p "$results" "$output"

# The avatar's face is where the bundled presenter's is.
if [[ ! -f $work/pack/pack.json ]]; then
    PYTHONPATH=training "$python" -m newscaster_tools.cli export-ditto --seeded 42 --pack -o "$work/pack"
fi
if [[ ! -f $work/avatar/avatar.json ]]; then
    "$1/newscaster" avatar create avatars/anna/canvas.png -o "$work/avatar" --pack "$work/pack" \
        --crop 710,160,500 --provider cuda
fi

of() { # pack and avatar of a name
    if [[ $1 == full ]]; then pack=$work/pack avatar=$work/avatar; else
        pack=packs/studio avatar=avatars/anna
    fi
}

"$bench/newscaster_gpu_bench" splice --avatar avatars/anna >"$results/splice.json"
for name in studio full; do
    of $name
    "$bench/newscaster_gpu_bench" diffusion --pack "$pack" >"$results/diffusion-$name.json"
    "$bench/newscaster_gpu_bench" sessions --pack "$pack" --avatar "$avatar" --seconds 6.6 \
        --speech examples/speech.wav >"$results/sessions-$name.json"
done
"$python" bench/ditto_cuda.py "${CUDA_BENCH:-$1/src/device/cuda/newscaster_cuda_bench}" \
    -o "$results/ditto.json" --roles motion_generator
"$python" bench/gpu_pages.py "$results" -o "$output"
for name in full studio; do
    of $name
    "$bench/newscaster_cadence_bench" --provider cuda --precision f16 --pack "$pack" \
        --avatars "$avatar" --speech examples/speech.wav --output-dir "$results"
    sed -i "s/cadence\.json/cadence-gpu-$name.json/g" "$results/cadence.md"
    for kind in json md; do mv "$results/cadence.$kind" "$output/cadence-gpu-$name.$kind"; done
done
