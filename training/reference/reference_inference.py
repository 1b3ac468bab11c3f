"""Reference of audio -> features -> motion -> driving keypoints, offline and in plain numpy.

The C++ engine has to agree with it to 1e-3; run it to make the golden file of the tests:

    python reference_inference.py --pack packs/studio --avatar avatars/anna \
        --audio examples/speech.wav --golden tests/golden/speech.safetensors
"""

import argparse
import math
import wave
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from philox import normal_rows
from reference_pack import Pack, read_safetensors, write_safetensors

Array = npt.NDArray[np.float32]

# Every eighth frame of keypoints keeps the golden file small.
KEYPOINT_STRIDE = 8


def read_wav(file: Path, sample_rate_hz: int) -> Array:
    """Mono 16-bit samples in [-1, 1)."""
    with wave.open(str(file)) as stream:
        found = (stream.getframerate(), stream.getnchannels(), stream.getsampwidth())
        if found != (sample_rate_hz, 1, 2):
            raise ValueError(f"{file}: found {found}, wanted {sample_rate_hz} Hz, mono, 16 bits")
        data = stream.readframes(stream.getnframes())
    return np.frombuffer(data, "<i2").astype(np.float32) / np.float32(32768)


def encode(pack: Pack, window: Array) -> Array:
    """Rows [present_frames, feature_dims] of one window of samples."""
    audio = pack.manifest["audio"]
    present, group = audio["chunk"]["present_frames"], audio["rows_per_frame"]
    (output,) = pack.audio_encoder.run(["features"], audio=window[None])
    rows = output[0, audio["first_row"] : audio["first_row"] + present * group]
    return rows.reshape(present, group, -1).mean(axis=1, dtype=np.float32)


def window_samples(pack: Pack) -> int:
    chunk = pack.manifest["audio"]["chunk"]
    frames = chunk["past_frames"] + chunk["present_frames"] + chunk["future_frames"]
    return frames * pack.manifest["audio"]["samples_per_frame"] + chunk["extra_samples"]


def extract_features(pack: Pack, samples: Array) -> Array:
    """One row per video frame [frames, feature_dims]; zeros before the start and after the end."""
    audio = pack.manifest["audio"]
    chunk, hop = audio["chunk"], audio["samples_per_frame"]
    frames, size = math.ceil(len(samples) / hop), window_samples(pack)
    before = np.zeros(chunk["past_frames"] * hop, np.float32)
    padded = np.concatenate([before, samples, np.zeros(size, np.float32)])
    starts = range(0, frames, chunk["present_frames"])
    rows = [encode(pack, padded[start * hop : start * hop + size]) for start in starts]
    return np.concatenate(rows)[:frames]


def silence_row(pack: Pack) -> Array:
    return encode(pack, np.zeros(window_samples(pack), np.float32))[0]


def alpha_bars(diffusion: dict[str, Any]) -> npt.NDArray[np.float64]:
    """Cosine schedule, Nichol & Dhariwal 2021, eq. 17, betas clipped at 0.999."""
    steps, s = diffusion["timesteps"], diffusion["cosine_s"]
    t = np.arange(steps + 1) / steps
    signal = np.cos((t + s) / (1 + s) * np.pi / 2) ** 2
    return np.cumprod(1 - np.clip(1 - signal[1:] / signal[:-1], 0, 0.999))


def timesteps(diffusion: dict[str, Any], steps: int) -> list[int]:
    table = diffusion["step_tables"].get(str(steps))
    if table is not None:
        return list(table)
    linear = np.linspace(-1, diffusion["timesteps"] - 1, steps + 1).astype(int)
    return [int(t) for t in linear[:0:-1]]


def sample_window(
    pack: Pack, latent: Array, previous_frame: Array, condition: Array, steps: int
) -> Array:
    """DDIM with eta = 0 (Song et al. 2020, eq. 12)."""
    diffusion = pack.manifest["motion"]["diffusion"]
    bars, plan = alpha_bars(diffusion), timesteps(diffusion, steps)
    for t, following in zip(plan, [*plan[1:], None], strict=True):
        noise, sample = pack.motion_generator.run(
            ["noise", "sample"],
            latent=latent[None],
            previous_frame=previous_frame[None],
            condition=condition[None],
            timestep=np.array([t], np.int64),
        )
        if following is None:
            return sample[0]
        signal = bars[following]
        latent = sample[0] * np.float32(np.sqrt(signal))
        latent = latent + noise[0] * np.float32(np.sqrt(1 - signal))
    raise ValueError("the step table is empty")


def spans(entries: list[dict[str, Any]]) -> Iterator[tuple[dict[str, Any], slice]]:
    offset = 0
    for entry in entries:
        yield entry, slice(offset, offset + entry["size"])
        offset += entry["size"]


def conditions(pack: Pack, features: Array, emotion: str | None = None) -> Array:
    """Condition rows; blink value and mask stay 0."""
    entries = pack.manifest["motion"]["conditions"]
    rows = np.zeros((len(features), sum(e["size"] for e in entries)), np.float32)
    for entry, columns in spans(entries):
        if entry["kind"] == "audio":
            rows[:, columns] = features
        elif entry["kind"] == "emotion":
            label = emotion or entry["default_label"]
            rows[:, columns.start + entry["labels"].index(label)] = 1
    return rows


def generate_motion(
    pack: Pack, features: Array, seed: int, steps: int, emotion: str | None = None
) -> Array:
    """Motion rows [frames, dims] in the layout's units, without smoothing filters."""
    spec = pack.manifest["motion"]
    window, overlap, dims = spec["window_frames"], spec["overlap_frames"], spec["dims"]
    hop, frames = window - overlap, len(features)
    windows = max(1, math.ceil((frames - overlap) / hop))
    total = overlap + hop * windows
    padding = np.repeat(silence_row(pack)[None], max(0, total - frames), axis=0)
    condition = conditions(pack, np.concatenate([features, padding]), emotion)
    noise = normal_rows(seed, 0, total, dims)
    mean = pack.constants[spec["normalisation"]["mean"]]
    std = pack.constants[spec["normalisation"]["std"]]
    neutral = np.concatenate([np.full(s["size"], s["neutral"]) for s in spec["layout"]])
    previous = ((neutral - mean) / std).astype(np.float32)
    weight = (np.arange(overlap) / max(overlap, 1))[:, None]
    track = np.zeros((total, dims), np.float32)
    for begin in range(0, hop * windows, hop):
        rows = sample_window(
            pack,
            noise[begin : begin + window],
            previous,
            condition[begin : begin + window],
            steps,
        )
        if begin > 0:
            old = track[begin : begin + overlap]
            rows[:overlap] = old * (1 - weight) + rows[:overlap] * weight
        track[begin : begin + window] = rows
        previous = track[begin + hop - 1]
    motion = track[:frames] * std + mean
    for span, columns in spans(spec["layout"]):
        if "clip" in span:
            motion[:, columns] = motion[:, columns].clip(*span["clip"])
    return motion.astype(np.float32)


def rotation(pitch_deg: float, yaw_deg: float, roll_deg: float) -> npt.NDArray[np.float64]:
    """(Rz Ry Rx)^T, for row vectors; x right, y down, z into the picture."""
    p, y, r = np.radians([pitch_deg, yaw_deg, roll_deg])
    rx = np.array([[1, 0, 0], [0, np.cos(p), -np.sin(p)], [0, np.sin(p), np.cos(p)]])
    ry = np.array([[np.cos(y), 0, np.sin(y)], [0, 1, 0], [-np.sin(y), 0, np.cos(y)]])
    rz = np.array([[np.cos(r), -np.sin(r), 0], [np.sin(r), np.cos(r), 0], [0, 0, 1]])
    return (rz @ ry @ rx).T


def driving_keypoints(pack: Pack, canonical: Array, source: Array, motion: Array) -> Array:
    """Keypoints [K, 3] of one motion row: s_s s_d (x_c R + delta) + t_s + t_d (docs/motion.md)."""
    columns = {s["kind"]: (c, s["neutral"]) for s, c in spans(pack.manifest["motion"]["layout"])}

    def relative(kind: str, row: Array) -> npt.NDArray[np.float64]:
        where, neutral = columns[kind]
        return row[where].astype(np.float64) - neutral

    def both(kind: str) -> npt.NDArray[np.float64]:
        return relative(kind, motion) + relative(kind, source)

    turn = rotation(both("pitch_deg")[0], both("yaw_deg")[0], both("roll_deg")[0])
    scale = (1 + relative("scale", motion)[0]) * (1 + relative("scale", source)[0])
    basis = pack.constants[pack.manifest["keypoints"]["expression_basis"]]
    delta = np.tensordot(relative("blendshapes", motion), basis.astype(np.float64), axes=1)
    keypoints = scale * (canonical.astype(np.float64) @ turn + delta) + both("translation")
    return keypoints.astype(np.float32)


def make_golden(pack: Pack, avatar: Path, audio: Path, golden: Path) -> None:
    samples = read_wav(audio, pack.manifest["audio"]["sample_rate_hz"])
    features = extract_features(pack, samples)
    diffusion = pack.manifest["motion"]["diffusion"]
    motion = generate_motion(pack, features, diffusion["default_seed"], diffusion["default_steps"])
    tensors = read_safetensors(avatar / "tensors.safetensors")
    canonical, source = tensors["kp_canonical"][0], tensors["source_motion"][0]
    keypoints = np.stack(
        [driving_keypoints(pack, canonical, source, row) for row in motion[::KEYPOINT_STRIDE]]
    )
    write_safetensors(
        golden,
        {
            "features": features,
            "motion": motion,
            "canonical_keypoints": canonical,
            "source_motion": source,
            "keypoints": keypoints,
        },
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--pack", type=Path, required=True, help="model pack folder")
    parser.add_argument("--avatar", type=Path, required=True, help="avatar folder")
    parser.add_argument("--audio", type=Path, required=True, help="mono 16-bit WAV")
    parser.add_argument("--golden", type=Path, required=True, help="safetensors file to write")
    arguments = parser.parse_args()
    make_golden(Pack.open(arguments.pack), arguments.avatar, arguments.audio, arguments.golden)


if __name__ == "__main__":
    main()
