#!/usr/bin/env python3
"""Inputs and reference outputs of the default pack's graphs, for the tests of the cuda provider.

    scripts/cuda-cases.py FOLDER

Runs packs/studio through onnxruntime on the CPU, with the bundled avatar's tensors and seeded noise,
and writes FOLDER/<role>.safetensors with "in:<tensor>" and "out:<tensor>". Needs onnxruntime, numpy
and safetensors. Set NEWSCASTER_CUDA_CASES=FOLDER when running the tests.
"""

import pathlib
import sys

import numpy as np
import onnxruntime
from safetensors.numpy import load_file, save_file

ROOT = pathlib.Path(__file__).resolve().parent.parent


def run(folder, role, inputs):
    session = onnxruntime.InferenceSession(ROOT / "packs/studio" / f"{role}.onnx",
                                           providers=["CPUExecutionProvider"])
    names = [output.name for output in session.get_outputs()]
    outputs = dict(zip(names, session.run(names, inputs)))
    case = {f"in:{name}": value for name, value in inputs.items()}
    case |= {f"out:{name}": value for name, value in outputs.items()}
    save_file({name: np.ascontiguousarray(value) for name, value in case.items()},
              folder / f"{role}.safetensors")
    return outputs


def main(arguments):
    if len(arguments) != 1:
        sys.exit(__doc__)
    folder = pathlib.Path(arguments[0])
    folder.mkdir(parents=True, exist_ok=True)
    noise = np.random.default_rng(5)

    def normal(*shape):
        return noise.standard_normal(shape, dtype=np.float32)

    cached = next(iter(sorted((ROOT / "avatars").glob("*/*.safetensors"))))
    tensors = {name: value[:1].astype(np.float32) / (255 if value.dtype == np.uint8 else 1)
               for name, value in load_file(cached).items()}
    maps = {name: tensors[name] for name in ("f64", "f128", "f256", "rgb")}
    source = tensors["kp_source"]
    driving = source + 0.02 * normal(1, 48, 3)
    warped = run(folder, "warp", {"f64": maps["f64"], "kp_source": source, "kp_driving": driving})
    run(folder, "decoder", {**maps, **warped})

    time = np.arange(15360, dtype=np.float32) / 16000
    tone = 0.2 * np.sin(2 * np.pi * 220 * time) + 0.1 * np.sin(2 * np.pi * 1900 * time)
    run(folder, "audio_encoder", {"wav": (tone + 0.02 * normal(15360))[None].astype(np.float32)})
    run(folder, "motion_generator", {
        "x": normal(1, 80, 59), "cond_frame": 0.3 * normal(1, 59), "cond": normal(1, 80, 90),
        "time_cond": np.array([499], dtype=np.int64)})


if __name__ == "__main__":
    main(sys.argv[1:])
