"""pack.json of Ditto v0.4: what the networks and upstream's run-time code fix, as data.

docs/ditto-pack.md explains every entry that schema version 1 did not have.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from safetensors.numpy import save

from ditto.config import DittoConfig
from newscaster_tools.ditto_cfg import DittoSettings
from newscaster_tools.files import sha256_of
from newscaster_tools.graphs import GraphRule

Json = dict[str, Any]
Constants = dict[str, npt.NDArray[np.float32]]

EMOTIONS = ("angry", "disgust", "fear", "happy", "neutral", "sad", "surprise", "contempt")
EMOTION_LOGIT = 8.0
LIPS = [6, 12, 14, 17, 19, 20]
EYES = [11, 13, 15, 16, 18]
SMOOTHED_DIMS = 202  # scale, poses, translation; the expression stays as it is
POSE_BIN_STEP_DEG = 3.0
POSE_BIN_OFFSET_DEG = -97.5
SAMPLES_PER_FRAME = 640
CHUNK = {"past_frames": 3, "present_frames": 5, "future_frames": 2, "extra_samples": 80}
OFFLINE_LEAD_SAMPLES = 80  # upstream's offline mode reads the extra samples before the chunk
ROWS_PER_FRAME = 2
PASTE_RATIO = 0.9  # inner part of the crop that is pasted opaquely
RANDOM_BLINK_GAP = [60, 100]

BINDINGS: dict[str, dict[str, str]] = {
    "audio_encoder": {"audio": "input_values", "features": "encoding_out"},
    "motion_generator": {
        "latent": "x",
        "previous_frame": "cond_frame",
        "condition": "cond",
        "timestep": "time_cond",
        "noise": "pred_noise",
        "sample": "x_start",
    },
    "stitch": {
        "source_keypoints": "kp_source",
        "driving_keypoints": "kp_driving",
        "stitched_keypoints": "kp_stitched",
    },
    "appearance_extractor": {"image": "image"},
    "motion_extractor": {
        "image": "image",
        "motion": "motion",
        "canonical_keypoints": "kp_canonical",
    },
    "warp": {"source_keypoints": "kp_source", "driving_keypoints": "kp_driving"},
    "decoder": {"image": "image"},
}
# Half precision suits all but the motion extractor; the engine uses it for the networks before the
# renderer on GPUs alone.
HALF_PRECISION = (
    "audio_encoder",
    "motion_generator",
    "stitch",
    "appearance_extractor",
    "warp",
    "decoder",
)


def _pose(name: str, bins: int) -> Json:
    return {
        "name": name,
        "kind": f"{name}_deg",
        "size": bins,
        "neutral": 0.0,
        "bins": {"step_deg": POSE_BIN_STEP_DEG, "offset_deg": POSE_BIN_OFFSET_DEG},
    }


def _layout(config: DittoConfig) -> list[Json]:
    poses = [_pose(name, config.pose_bins) for name in ("pitch", "yaw", "roll")]
    points = 3 * config.keypoints
    return [
        {"name": "scale", "kind": "scale", "size": 1, "neutral": 1.0, "stored_offset": 1.0},
        *poses,
        {"name": "translation", "kind": "translation", "size": 3, "neutral": 0.0, "axes": "xy"},
        {"name": "expression", "kind": "expression", "size": points, "neutral": 0.0},
    ]


def _conditions(config: DittoConfig, settings: DittoSettings) -> list[Json]:
    return [
        {"kind": "audio", "size": config.hubert_dims},
        {
            "kind": "emotion",
            "size": len(EMOTIONS),
            "labels": list(EMOTIONS),
            "default_label": EMOTIONS[settings.emotion[0]],
            "default_labels": [EMOTIONS[index] for index in settings.emotion],
            "softmax_logit": EMOTION_LOGIT,
        },
        {"kind": "eye_open", "size": config.eye_open_dims},
        {"kind": "eye_ball", "size": config.eye_ball_dims},
        {"kind": "source_keypoints", "size": 3 * config.keypoints},
    ]


def _composition(settings: DittoSettings) -> Json:
    """How generated motion is put on the source's; see docs/ditto-pack.md."""
    return {
        "relative": settings.relative,
        "driven_spans": {
            "image": ["expression", "pitch", "yaw", "roll", "translation"],
            "video": ["expression"],
        },
        "driven_keypoints": "lips",
        "eye_keypoints": "eyes",
        "drive_eyes": {"image": True, "video": False},
        "stitching": settings.stitching,
        "blink": {
            "offsets": "blink_offsets" if settings.blink is not None else None,
            "gap_frames": settings.blink_gap,
            "random_gap_frames": RANDOM_BLINK_GAP,
        },
        "gaze": {
            "yaw_ratio": 0.26,
            "pitch_ratio": 0.28,
            # Expression offset per degree of gaze, for turns to either side.
            "offsets": [
                {"keypoint": 11, "axis": "x", "by": "yaw", "above": 0.0007, "below": 0.001},
                {"keypoint": 15, "axis": "x", "by": "yaw", "above": 0.001, "below": 0.0007},
                {"keypoint": 11, "axis": "y", "by": "pitch", "above": -0.001, "below": -0.001},
                {"keypoint": 15, "axis": "y", "by": "pitch", "above": -0.001, "below": -0.001},
            ],
        },
        "fade_spans": ["expression"],
    }


def _motion(config: DittoConfig, settings: DittoSettings) -> Json:
    motion: Json = {
        "dims": config.motion_dims,
        "window_frames": config.sequence_frames,
        "overlap_frames": settings.overlap_frames,
        "fusion": "online" if settings.online else "offline",
        "smooth_windows": True,
        "last_window": "repeat_last",
        "initial_frame": "source",
        "reset": {
            "interval_windows": settings.reset_interval,
            "kept_dims": list(settings.reset_kept) if settings.reset_kept else None,
        },
        "layout": _layout(config),
        "conditions": _conditions(config, settings),
        "smoothing": [],
        "source_smoothing_frames": settings.source_smoothing_frames,
        "normalisation": {"mean": "motion_mean", "std": "motion_std"},
        "diffusion": {
            "timesteps": 1000,
            "schedule": "cosine",
            "cosine_s": 0.008,
            "default_steps": 4,
            "default_seed": 42,
            "step_tables": {},
            "default_eta": 0.0,
            "stochastic": {"eta": 1.0, "steps": settings.sampling_steps},
        },
        "composition": _composition(settings),
    }
    if settings.smoothing_frames > 1:
        # An even box reaches half of its size to both sides, as an odd one does.
        frames = settings.smoothing_frames // 2 * 2 + 1
        motion["smoothing"] = [{"offset": 0, "size": SMOOTHED_DIMS, "frames": frames}]
    if settings.clip is not None:
        motion["clip"] = {"low": "motion_clip_low", "high": "motion_clip_high"}
    return motion


def _crop(config: DittoConfig, settings: DittoSettings) -> Json:
    side = 2 * config.image_size
    border = (side - int(side * PASTE_RATIO)) // 2
    return {
        "size_px": side,
        "mask": {"inset_px": 0, "feather_px": border, "profile": "linear"},
        "framing": {
            "scale": settings.crop_scale,
            "shift_x": settings.crop_shift_x,
            "shift_y": settings.crop_shift_y,
            "rotate": settings.crop_rotate,
        },
    }


def _tensors(rules: Mapping[str, tuple[tuple[int, ...], str]]) -> Json:
    return {name: {"dtype": dtype, "shape": list(shape)} for name, (shape, dtype) in rules.items()}


def graph_entry(role: str, rule: GraphRule, path: Path, extra: Mapping[str, Any]) -> Json:
    """One graph of the manifest. `extra` has outputs that the release's graph lacks."""
    inputs = {tensor.name: (tensor.shape, tensor.dtype) for tensor in rule.inputs}
    outputs = {tensor.name: (tensor.shape, tensor.dtype) for tensor in rule.outputs}
    return {
        "file": path.name,
        "sha256": sha256_of(path),
        "precisions": ["f32", "f16"] if role in HALF_PRECISION else ["f32"],
        "variants": {},
        "inputs": _tensors(inputs),
        "outputs": _tensors(outputs | dict(extra)),
        "bindings": BINDINGS[role],
    }


def write_constants(path: Path, config: DittoConfig, settings: DittoSettings) -> None:
    """Ditto's motion is not normalised: mean 0, deviation 1."""
    constants: Constants = {
        "motion_mean": np.zeros(config.motion_dims, dtype=np.float32),
        "motion_std": np.ones(config.motion_dims, dtype=np.float32),
    }
    if settings.clip is not None:
        constants["motion_clip_low"] = settings.clip[0].copy()
        constants["motion_clip_high"] = settings.clip[1].copy()
    if settings.blink is not None:
        constants["blink_offsets"] = settings.blink
    path.write_bytes(save(constants))


def manifest(
    name: str,
    config: DittoConfig,
    settings: DittoSettings,
    graphs: Mapping[str, Json],
    constants: Path,
) -> Json:
    return {
        "format": "newscaster-pack",
        "schema_version": 1,
        "name": name,
        "version": "0.4.0",
        "title": "Ditto v0.4",
        "license": "Apache-2.0",
        "frame_rate": "25/1",
        "audio": {
            "sample_rate_hz": 16000,
            "samples_per_frame": SAMPLES_PER_FRAME,
            "chunk": CHUNK if settings.online else CHUNK | {"lead_samples": OFFLINE_LEAD_SAMPLES},
            "feature_dims": config.hubert_dims,
            "rows_per_frame": ROWS_PER_FRAME,
            "first_row": CHUNK["past_frames"] * ROWS_PER_FRAME,
        },
        "motion": _motion(config, settings),
        "keypoints": {"count": config.keypoints, "groups": {"lips": LIPS, "eyes": EYES}},
        "crop": _crop(config, settings),
        "constants": {"file": constants.name, "sha256": sha256_of(constants)},
        "graphs": dict(graphs),
    }
