"""Compares a converted pack with the prototype's f32 graphs on real audio and real keypoints.

    python measure_precision.py PROTOTYPE_FOLDER PACK_FOLDER AVATAR_FOLDER AUDIO.wav

AUDIO.wav: 16-bit samples at the pack's rate (ffmpeg -i speech.mp3 -ac 1 -ar 16000 AUDIO.wav).

Prints the largest error of the audio features, of the denoised motion (whole track, in motion
units) and of warp and decoder at batch 1 and batch 2. Exits with 1 when the motion differs by more
than MOTION_LIMIT.
"""

from __future__ import annotations

import argparse
import itertools
import json
import sys
import wave
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import openvino as ov
from safetensors.numpy import load_file

Array = npt.NDArray[Any]
MOTION_LIMIT = 2e-3


class Runner:
    """Compiles a graph in f32 on the CPU and runs it with tensors fed by name."""

    def __init__(self, path: Path) -> None:
        hints = {"INFERENCE_PRECISION_HINT": "f32"}
        self._compiled = ov.Core().compile_model(path, "CPU", hints)

    def __call__(self, **inputs: Array) -> dict[str, Array]:
        result = self._compiled(inputs)
        return {o.any_name: np.array(result[o]) for o in self._compiled.outputs}


def read_wav(path: Path, rate: int) -> Array:
    with wave.open(str(path)) as file:
        if (file.getframerate(), file.getsampwidth()) != (rate, 2):
            raise ValueError(f"{path}: wanted 16-bit samples at {rate} Hz")
        pcm = np.frombuffer(file.readframes(file.getnframes()), np.int16)
        mono: Array = pcm.reshape(-1, file.getnchannels()).mean(axis=1)
        return mono.astype(np.float32) / 32768


def encode(graph: Path, samples: Array, manifest: dict[str, Any]) -> Array:
    audio, chunk = manifest["audio"], manifest["audio"]["chunk"]
    hop = audio["samples_per_frame"]
    frames = -(-len(samples) // hop)
    present = chunk["present_frames"]
    window = (chunk["past_frames"] + present + chunk["future_frames"]) * hop
    padded = np.zeros(chunk["past_frames"] * hop + frames * hop + window, np.float32)
    padded[chunk["past_frames"] * hop :][: len(samples)] = samples
    run = Runner(graph)
    rows = [
        run(wav=padded[None, i * hop : i * hop + window])["feat"][0]
        for i in range(0, frames, present)
    ]
    return np.concatenate(rows)[:frames]


def cosine_alphas(timesteps: int, s: float) -> Array:
    t = np.linspace(0, 1, timesteps + 1)
    bar = np.cos((t + s) / (1 + s) * np.pi / 2) ** 2
    return np.asarray(np.cumprod(1 - np.clip(1 - bar[1:] / bar[:-1], 0, 0.999)))


def denoise(
    graph: Path, features: Array, manifest: dict[str, Any], stats: dict[str, Array]
) -> Array:
    """One DDIM pass per window, conditioned on the frame before its overlap; [frames, dims]."""
    motion = manifest["motion"]
    window, overlap, dims = (motion[k] for k in ("window_frames", "overlap_frames", "dims"))
    diffusion = motion["diffusion"]
    steps = [*diffusion["step_tables"][str(diffusion["default_steps"])], -1]
    alphas = cosine_alphas(diffusion["timesteps"], diffusion["cosine_s"])
    mean, std = stats["motion_mean"], stats["motion_std"]
    noise = np.random.default_rng(diffusion["default_seed"])
    neutral = np.zeros(dims, np.float32)
    neutral[0] = 1
    previous: Array = ((neutral - mean) / std)[None]
    run = Runner(graph)
    windows: list[Array] = []
    for start in range(0, len(features) - window + 1, window - overlap):
        rows: Array = np.zeros((1, window, features.shape[1] + 10), np.float32)
        rows[0, :, : features.shape[1]] = features[start : start + window]
        rows[0, :, features.shape[1] + 4] = 1
        x: Array = noise.standard_normal((1, window, dims)).astype(np.float32)
        for now, after in itertools.pairwise(steps):
            time = np.array([now], np.int64)
            out = run(x=x, cond_frame=previous, cond=rows, time_cond=time)
            x = out["x_start"]
            if after >= 0:
                scale, sigma = np.sqrt(alphas[after]), np.sqrt(1 - alphas[after])
                x = (scale * x + sigma * out["pred_noise"]).astype(np.float32)
        previous = x[:, window - overlap - 1]
        windows.append(x[0] * std + mean)
    return np.concatenate(windows)


def driving_points(avatar: dict[str, Array], basis: Array, track: Array, count: int) -> Array:
    """Driving keypoints without head rotation: enough variety to compare two graphs."""
    frames = track[:: max(1, len(track) // count)][:count]
    move = np.einsum("fa,akx->fkx", np.clip(frames[:, 7:], 0, 1), basis)
    return np.asarray(avatar["kp_source"] + move, dtype=np.float32)


def compare_renderer(prototype: Path, pack: Path, avatar: dict[str, Array], points: Array) -> None:
    old_warp = Runner(prototype / "visual/onnx/warp_network.fp16.onnx")
    old_decoder = Runner(prototype / "visual/onnx/decoder.fp16.onnx")
    warp, decoder = Runner(pack / "warp.onnx"), Runner(pack / "decoder.onnx")
    maps: dict[str, Array] = {
        name: avatar[name].astype(np.float32) for name in ("f64", "f128", "f256")
    }
    maps["rgb"] = avatar["rgb"].astype(np.float32) / 255
    source = avatar["kp_source"]
    wanted = []
    for point in points:
        moved = old_warp(f64=maps["f64"], kp_source=source, kp_driving=point[None])
        wanted.append((moved, old_decoder(**maps, **moved)["out"]))
    for batch in (1, 2):
        worst = dict.fromkeys([*wanted[0][0], "out"], 0.0)
        for start in range(0, len(points) - batch + 1, batch):
            repeated = {n: np.repeat(t, batch, axis=0) for n, t in maps.items()}
            moved = warp(
                f64=repeated["f64"],
                kp_source=np.repeat(source, batch, axis=0),
                kp_driving=points[start : start + batch],
            )
            results = {**moved, **decoder(**repeated, **moved)}
            for i in range(batch):
                expected: dict[str, Array] = {**wanted[start + i][0], "out": wanted[start + i][1]}
                for name, tensor in expected.items():
                    error = float(np.abs(results[name][i] - tensor[0]).max())
                    worst[name] = max(worst[name], error)
        print(f"renderer, batch {batch}: " + ", ".join(f"{n} {e:.2e}" for n, e in worst.items()))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    for name in ("prototype", "pack", "avatar", "audio"):
        parser.add_argument(name, type=Path)
    options = parser.parse_args()
    manifest = json.loads((options.pack / "pack.json").read_text(encoding="utf-8"))
    stats = load_file(options.pack / "constants.safetensors")
    avatar = load_file(options.avatar / "tensors.safetensors")
    samples = read_wav(options.audio, manifest["audio"]["sample_rate_hz"])

    old_audio = options.prototype / "audio"
    exact = encode(old_audio / "audio_encoder.onnx", samples, manifest)
    stored = encode(options.pack / "audio_encoder.onnx", samples, manifest)
    print(f"features: {len(exact)} frames, max error {np.abs(exact - stored).max():.2e}")

    wanted = denoise(old_audio / "lmdm.onnx", exact, manifest, stats)
    generator = options.pack / "motion_generator.onnx"
    for label, features in (("generator alone", exact), ("with its encoder", stored)):
        error = np.abs(denoise(generator, features, manifest, stats) - wanted)
        names = (("pose", slice(1, 4)), ("scale, translation", [0, 4, 5, 6]))
        parts = [f"{name} {error[:, dims].max():.2e}" for name, dims in names]
        parts.append(f"blendshapes {error[:, 7:].max():.2e}")
        print(f"motion, {label}: {len(error)} frames, max error: " + ", ".join(parts))
    compare_renderer(
        options.prototype,
        options.pack,
        avatar,
        driving_points(avatar, stats["expression_basis"], wanted, 6),
    )
    sys.exit(1 if error.max() > MOTION_LIMIT else 0)


if __name__ == "__main__":
    main()
