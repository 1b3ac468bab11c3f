"""Manifest of the pack `studio` and of its avatars (docs/pack-format.md, docs/avatar-format.md)."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import onnx
from safetensors.numpy import save

from studio.graph_files import signature
from studio.voices.arkit import ARKIT
from studio.voices.phones import PHONES

Array = npt.NDArray[Any]

PACK_NAME = "studio"
PACK_VERSION = "1.0.0"
PACK_TITLE = "Studio: compact default presenters"
LICENSE = "CC0-1.0"
KEYPOINTS = 48
CROP_PX = 512
MOTION_DIMS = 59
FEATURE_DIMS = 80
WINDOW = 80
CONDITION_DIMS = 90
SAMPLES_PER_FRAME = 640
CHUNK_FRAMES = {"past_frames": 15, "present_frames": 5, "future_frames": 4}
CHUNK_SAMPLES = sum(CHUNK_FRAMES.values()) * SAMPLES_PER_FRAME
EMOTIONS = ["angry", "disgust", "fear", "happy", "neutral", "sad", "surprise", "contempt"]

# A keypoint belongs to a group when one of the group's channels at full value moves it at least
# this far (crop = [-1,1]; 0.04 is ten pixels of 512).
LIPS_MIN_MOVE = 0.04
EYES_MIN_MOVE = 0.01

MAPS = {"f64": [1, 64, 64, 64], "f128": [1, 24, 128, 128], "f256": [1, 8, 256, 256]}
POINTS = [1, KEYPOINTS, 3]
FLOW = {
    "flow": [1, 2, 128, 128],
    "occlusion": [1, 1, 128, 128],
    "z": [1, 160],
    "field": [1, 84, 64, 64],
}
PICTURE = [1, 3, CROP_PX, CROP_PX]


@dataclass(frozen=True)
class GraphPlan:
    """What the manifest says about a graph."""

    inputs: dict[str, list[int]]
    outputs: dict[str, list[int]]
    bindings: dict[str, str]
    precisions: list[str] = field(default_factory=lambda: ["f32"])


PLANS = {
    "audio_encoder": GraphPlan(
        {"wav": [1, CHUNK_SAMPLES]},
        {
            "feat": [1, CHUNK_FRAMES["present_frames"], FEATURE_DIMS],
            "phone_logits": [1, CHUNK_FRAMES["present_frames"], len(PHONES)],
        },
        {"audio": "wav", "features": "feat", "phones": "phone_logits"},
        ["f32", "f16"],
    ),
    "motion_generator": GraphPlan(
        {
            "x": [1, WINDOW, MOTION_DIMS],
            "cond_frame": [1, MOTION_DIMS],
            "cond": [1, WINDOW, CONDITION_DIMS],
            "time_cond": [1],
        },
        {"pred_noise": [1, WINDOW, MOTION_DIMS], "x_start": [1, WINDOW, MOTION_DIMS]},
        {
            "latent": "x",
            "previous_frame": "cond_frame",
            "condition": "cond",
            "timestep": "time_cond",
            "noise": "pred_noise",
            "sample": "x_start",
        },
        ["f32", "f16"],
    ),
    "warp": GraphPlan(
        {"f64": MAPS["f64"], "kp_source": POINTS, "kp_driving": POINTS},
        FLOW,
        {"source_keypoints": "kp_source", "driving_keypoints": "kp_driving"},
        ["f32", "bf16", "f16"],
    ),
    "decoder": GraphPlan(
        {**MAPS, "rgb": PICTURE, **FLOW},
        {"out": PICTURE},
        {"source_image": "rgb", "image": "out"},
        ["f32", "bf16", "f16"],
    ),
    "appearance_extractor": GraphPlan({"source": PICTURE}, MAPS, {"image": "source"}),
    "motion_extractor": GraphPlan(
        {"image": [1, 3, 256, 256]},
        {"motion": [1, MOTION_DIMS], "kp_canonical": POINTS},
        {"image": "image", "motion": "motion", "canonical_keypoints": "kp_canonical"},
    ),
}

# The presenters' crops as the face landmarks see them: mean of the three, spread 3 % and 0.006.
FRAMING = {"scale": 2.9, "shift_x": 0.0, "shift_y": -0.088, "rotate": True}


def sha256_of(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def write_json(path: Path, value: dict[str, Any]) -> None:
    path.write_text(json.dumps(value, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")


def graph_entry(role: str, file: Path) -> dict[str, Any]:
    plan = PLANS[role]
    inputs, outputs = signature(onnx.load(file))
    if set(inputs) != set(plan.inputs) or set(outputs) != set(plan.outputs):
        raise ValueError(
            f"{role}: tensors {sorted(inputs)} -> {sorted(outputs)} are not the plan's"
        )

    def specs(types: dict[str, str], shapes: dict[str, list[int]]) -> dict[str, Any]:
        return {n: {"dtype": types[n], "shape": shapes[n]} for n in shapes}

    return {
        "file": file.name,
        "sha256": sha256_of(file),
        "precisions": plan.precisions,
        "variants": {},
        "inputs": specs(inputs, plan.inputs),
        "outputs": specs(outputs, plan.outputs),
        "bindings": plan.bindings,
    }


def group_keypoints(basis: Array, channels: list[str]) -> dict[str, list[int]]:
    """Keypoint groups: three from how the prototype chose its points, two from the basis.

    lips: moved LIPS_MIN_MOVE or more by a channel named mouth*. eyes (lids): moved EYES_MIN_MOVE
    or more by eyeBlinkLeft or eyeBlinkRight.
    """
    fixed = {"anchors": [0, 1, 2, 3], "pupils": [45, 46], "tongue": [47]}
    taken = {index for group in fixed.values() for index in group}
    reach = np.linalg.norm(basis, axis=2)

    def moved_by(prefix: str, least: float) -> list[int]:
        rows = [i for i, name in enumerate(channels) if name.startswith(prefix)]
        moved = np.flatnonzero(reach[rows].max(axis=0) >= least)
        return [int(k) for k in moved if int(k) not in taken]

    lips, eyes = moved_by("mouth", LIPS_MIN_MOVE), moved_by("eyeBlink", EYES_MIN_MOVE)
    return {"lips": lips, "eyes": eyes, **fixed}


def motion_section(channels: list[str]) -> dict[str, Any]:
    return {
        "dims": MOTION_DIMS,
        "window_frames": WINDOW,
        "overlap_frames": 10,
        "layout": [
            {"name": "scale", "kind": "scale", "size": 1, "neutral": 1.0},
            {"name": "pitch", "kind": "pitch_deg", "size": 1, "neutral": 0.0},
            {"name": "yaw", "kind": "yaw_deg", "size": 1, "neutral": 0.0},
            {"name": "roll", "kind": "roll_deg", "size": 1, "neutral": 0.0},
            {"name": "translation", "kind": "translation", "size": 3, "neutral": 0.0},
            {
                "name": "blendshapes",
                "kind": "blendshapes",
                "size": len(channels),
                "neutral": 0.0,
                "clip": [0.0, 1.0],
                "channels": channels,
            },
        ],
        "conditions": [
            {"kind": "audio", "size": FEATURE_DIMS},
            {"kind": "emotion", "size": 8, "labels": EMOTIONS, "default_label": "neutral"},
            {"kind": "blink_value", "size": 1},
            {"kind": "blink_mask", "size": 1},
        ],
        "smoothing": [],
        "normalisation": {"mean": "motion_mean", "std": "motion_std"},
        "diffusion": {
            "timesteps": 1000,
            "schedule": "cosine",
            "cosine_s": 0.008,
            "default_steps": 4,
            "default_seed": 42,
            "step_tables": {
                "2": [999, 820],
                "4": [999, 930, 820, 550],
                "6": [980, 920, 840, 720, 540, 280],
            },
        },
    }


def write_pack(
    folder: Path, basis: Array, mean: Array, std: Array, version: str = PACK_VERSION
) -> dict[str, Any]:
    """Constants and manifest of the graphs that lie in `folder`; returns the manifest.

    `basis` [52, K, 3] in ARKit's order; `mean` and `std` normalise motion [59].
    """
    constants = folder / "constants.safetensors"
    tensors = {"expression_basis": basis, "motion_mean": mean, "motion_std": std}
    constants.write_bytes(save({k: np.ascontiguousarray(v) for k, v in tensors.items()}))
    channels = list(ARKIT)
    manifest = {
        "format": "newscaster-pack",
        "schema_version": 1,
        "name": PACK_NAME,
        "version": version,
        "title": PACK_TITLE,
        "license": LICENSE,
        "frame_rate": "25/1",
        "audio": {
            "sample_rate_hz": 16000,
            "samples_per_frame": SAMPLES_PER_FRAME,
            "chunk": {**CHUNK_FRAMES, "extra_samples": 0},
            "feature_dims": FEATURE_DIMS,
            "rows_per_frame": 1,
            "first_row": 0,
            "phones": list(PHONES),
        },
        "motion": motion_section(channels),
        "keypoints": {
            "count": KEYPOINTS,
            "expression_basis": "expression_basis",
            "groups": group_keypoints(basis, channels),
        },
        "crop": {"size_px": CROP_PX, "mask": {"inset_px": 4, "feather_px": 40}, "framing": FRAMING},
        "constants": {"file": constants.name, "sha256": sha256_of(constants)},
        "graphs": {role: graph_entry(role, folder / f"{role}.onnx") for role in PLANS},
    }
    write_json(folder / "pack.json", manifest)
    return manifest


def avatar_key(manifest: dict[str, Any]) -> str:
    """Identity of what cached tensors depend on; the text is defined in docs/pack-format.md."""
    lines = ["newscaster-avatar-key 1"]
    for role in ("appearance_extractor", "motion_extractor", "warp", "decoder"):
        graph = manifest["graphs"].get(role)
        lines.append(f"{role} {graph['sha256'] if graph else '-'}")
    lines.append(f"crop {manifest['crop']['size_px']}")
    lines.append(f"keypoints {manifest['keypoints']['count']}")
    text = "".join(line + "\n" for line in lines)
    return hashlib.sha256(text.encode("ascii")).hexdigest()


def write_avatar(
    folder: Path, name: str, title: str, key: str, crop_to_canvas: list[list[float]],
    tensors: dict[str, Array],
) -> None:  # fmt: skip
    """Tensors and avatar.json of the avatar whose canvas.png and source.png lie in `folder`.

    Every tensor has the source frames as its first axis (one here).
    """
    file = folder / "tensors.safetensors"
    file.write_bytes(save({k: np.ascontiguousarray(t) for k, t in tensors.items()}))
    write_json(
        folder / "avatar.json",
        {
            "format": "newscaster-avatar",
            "schema_version": 1,
            "name": name,
            "title": title,
            "license": LICENSE,
            "pack": {"name": PACK_NAME, "avatar_key": key},
            "canvas": {"width": 1920, "height": 1080, "files": ["canvas.png"]},
            "source_frames": [{"crop_to_canvas": crop_to_canvas}],
            "tensors": {"file": file.name, "sha256": sha256_of(file)},
        },
    )
