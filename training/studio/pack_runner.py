"""Runs a pack's audio encoder and motion generator offline, from its manifest, in numpy.

The C++ engine is the product; this is how the recipe measures a pack while it is being made.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import onnxruntime
from safetensors.numpy import load_file

from studio.models.motion_generator import STEP_TABLES, noise_schedule
from studio.voices.arkit import MOTION_DIMS, NEUTRAL, POSE

Array = npt.NDArray[np.float32]


class PackRunner:
    def __init__(self, pack: Path, threads: int = 1) -> None:
        self._manifest: dict[str, Any] = json.loads((pack / "pack.json").read_text("utf-8"))
        settings = onnxruntime.SessionOptions()
        settings.intra_op_num_threads = threads

        def session(role: str) -> onnxruntime.InferenceSession:
            file = pack / self._manifest["graphs"][role]["file"]
            return onnxruntime.InferenceSession(
                str(file), settings, providers=["CPUExecutionProvider"]
            )

        self._encoder, self._generator = session("audio_encoder"), session("motion_generator")
        constants = load_file(pack / self._manifest["constants"]["file"])
        self._mean, self._std = constants["motion_mean"], constants["motion_std"]
        self._alpha = noise_schedule().numpy()

    def features(self, samples: Array) -> tuple[Array, Array]:
        """Feature rows [n, 80] and phone logits [n, 40] at 25 frames a second."""
        chunk = self._manifest["audio"]["chunk"]
        past, present, future = (chunk[f"{k}_frames"] for k in ("past", "present", "future"))
        size = self._manifest["audio"]["samples_per_frame"]
        frames = -(-len(samples) // size)
        calls = -(-frames // present)
        total = (past + calls * present + future) * size
        padded = np.zeros(total, np.float32)
        padded[past * size : past * size + len(samples)] = samples
        rows, logits = [], []
        for call in range(calls):
            first = call * present * size
            part = padded[None, first : first + (past + present + future) * size]
            got = self._encoder.run(["feat", "phone_logits"], {"wav": part})
            rows.append(got[0][0])
            logits.append(got[1][0])
        return np.concatenate(rows)[:frames], np.concatenate(logits)[:frames]

    def motion(self, features: Array, steps: int = 4, seed: int = 0) -> Array:
        """Motion [n, 59] for feature rows, neutral, windows fused by a linear cross-fade."""
        window = self._manifest["motion"]["window_frames"]
        overlap = self._manifest["motion"]["overlap_frames"]
        frames, hop = len(features), window - overlap
        windows = max(1, -(-(frames - overlap) // hop))
        total = overlap + hop * windows
        quiet, _ = self.features(np.zeros(640 * 30, np.float32))
        condition = np.zeros((1, total, 90), np.float32)
        condition[0, :, :80] = quiet[15]
        condition[0, :frames, :80] = features
        condition[0, :, 80 + NEUTRAL] = 1
        noise = np.random.default_rng(seed).standard_normal((total, MOTION_DIMS))
        rest = np.zeros(MOTION_DIMS)
        rest[0] = 1
        before = ((rest - self._mean) / self._std).astype(np.float32)
        fade = (np.arange(overlap) / overlap)[:, None]
        track = np.zeros((0, MOTION_DIMS), np.float32)
        for index in range(windows):
            rows = slice(index * hop, index * hop + window)
            x = noise[None, rows].astype(np.float32)
            made = self._sample(x, before[None], condition[:, rows], STEP_TABLES[steps])
            if len(track):
                track[-overlap:] = track[-overlap:] * (1 - fade) + made[:overlap] * fade
                track = np.concatenate([track, made[overlap:]])
            else:
                track = made
            before = track[-overlap - 1].astype(np.float32)
        motion = track[:frames] * self._std + self._mean
        motion[:, len(POSE) :] = np.clip(motion[:, len(POSE) :], 0, 1)
        return np.asarray(motion, dtype=np.float32)

    def _sample(self, x: Array, before: Array, condition: Array, steps: tuple[int, ...]) -> Array:
        for step, following in zip(steps, (*steps[1:], None), strict=True):
            feeds = {"x": x, "cond_frame": before, "cond": condition,
                     "time_cond": np.array([step], np.int64)}  # fmt: skip
            predicted, clean = self._generator.run(["pred_noise", "x_start"], feeds)
            if following is None:
                break
            alpha = float(self._alpha[following])
            x = (clean * np.sqrt(alpha) + np.sqrt(1 - alpha) * predicted).astype(np.float32)
        result: Array = clean[0]
        return result
