"""The cases of ditto_tracks.py: made-up inputs, and what the engine and upstream are told."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

sys.path.append(str(Path(__file__).resolve().parents[1]))
from newscaster_tools.golden_ditto import formula_input

Floats = npt.NDArray[np.float32]
Json = dict[str, Any]

FRAMES = 400
SEED = 42
AUDIO_SAMPLES = 20000  # 31.25 frames
TRACK_STRIDE = 10  # frames
KEYPOINT_STRIDE = 16
GAP_STREAM = 1 << 31
DIMS = 265
# Span of the motion vector -> (size, half range) of made-up motion.
SPANS = {
    "scale": (1, 0.05),
    "pitch": (66, 4.0),
    "yaw": (66, 4.0),
    "roll": (66, 4.0),
    "t": (3, 0.1),
    "exp": (63, 0.05),
}


def scaled_formula(name: str, shape: tuple[int, ...], low: float, high: float) -> Floats:
    return formula_input(name, shape, (low, high))


def motion_rows(name: str, rows: int) -> Floats:
    parts = [
        scaled_formula(f"{name}.{span}", (rows, size), -half, half)
        for span, (size, half) in SPANS.items()
    ]
    return np.concatenate(parts, axis=1)


def as_info(row: Floats) -> dict[str, Floats]:
    """A row of the motion vector in upstream's form."""
    info: dict[str, Floats] = {}
    start = 0
    for span, (size, _) in SPANS.items():
        info[span] = row[start : start + size].reshape(1, size).copy()
        start += size
    info["scale"] += 1
    return info


def avatar(name: str, sources: int) -> Json:
    """What upstream's registration knows of an avatar."""
    motion = motion_rows(f"{name}.motion", sources)
    keypoints = scaled_formula(f"{name}.kp", (sources, 63), -0.4, 0.4)
    eye_open = scaled_formula(f"{name}.eye_open", (sources, 2), 0.0, 0.4)
    eye_ball = scaled_formula(f"{name}.eye_ball", (sources, 6), -0.4, 0.4)
    return {
        "x_s_info_lst": [
            as_info(row) | {"kp": kp.reshape(1, 63)}
            for row, kp in zip(motion, keypoints, strict=True)
        ],
        "sc": keypoints[0],
        "eye_open_lst": [row[None] for row in eye_open],
        "eye_ball_lst": [row[None] for row in eye_ball],
        "is_image_flag": sources == 1,
    }


@dataclass(frozen=True)
class Case:
    """One comparison. `manifest`, `controls`: what the engine is told; `upstream`: the same."""

    name: str
    sources: int = 1
    manifest: Json = field(default_factory=dict)
    controls: Json = field(default_factory=dict)
    upstream: Json = field(default_factory=dict)
    per_frame: Callable[[int], Json] = lambda _: {}
    character: bool = False
    constants: tuple[str, ...] = ()  # made-up constants that the pack gets


LIPS_UP = scaled_formula("delta_exp", (63,), -0.02, 0.02)
BLINK = scaled_formula("blink_offsets", (15, 63), -0.05, 0.05)
CLIP = np.stack(
    [
        -np.abs(scaled_formula("clip_low", (DIMS,), 0.01, 0.3)),
        np.abs(scaled_formula("clip_high", (DIMS,), 0.01, 0.3)),
    ]
)
ONLINE = {"/motion/fusion": "online", "/motion/overlap_frames": 70}
CLIPPED = {"/motion/clip": {"low": "motion_clip_low", "high": "motion_clip_high"}}
BLINKING = {"/motion/composition/blink/offsets": "blink_offsets"}

TRACKS = (
    Case("offline"),
    Case("online", manifest=ONLINE, upstream={"online_mode": True, "overlap_v2": 70}),
    Case("offline_stochastic", controls={"eta": 1.0}, upstream={"sampling_timesteps": 50}),
    Case(
        "offline_video_reset_clip",
        sources=5,
        manifest=CLIPPED | {"/motion/reset": {"interval_windows": 2, "kept_dims": [0, 202]}},
        controls={"emotion": ["happy", "surprise"]},
        upstream={
            "fix_kp_cond": 2,
            "fix_kp_cond_dim": [0, 202],
            "v_min_max_for_clip": CLIP,
            "emo": [3, 6],
        },
        constants=("motion_clip_low", "motion_clip_high"),
    ),
    Case(
        "online_reset_emotions_character",
        sources=5,
        manifest=ONLINE | {"/motion/reset": {"interval_windows": 3, "kept_dims": None}},
        controls={
            "first_frame_eyes": True,
            "frames": [
                {"first": 0, "last": 99, "emotion": "angry"},
                {"first": 100, "last": 249, "emotion": ["sad", "fear"]},
                {"first": 250, "emotion": "contempt"},
            ],
        },
        upstream={
            "online_mode": True,
            "overlap_v2": 70,
            "fix_kp_cond": 3,
            "eye_f0_mode": True,
            # Upstream starts over where the list ends, which the last window looks beyond.
            "emo": [[0]] * 100 + [[5, 2]] * 150 + [[7]] * 230,
        },
        character=True,
    ),
)


def _fades(frame: int) -> Json:
    """Fade in over 40 frames, out over 50, as upstream's setup_Nd."""
    if frame < 40:
        return {"fade_alpha": frame / 40}
    if frame >= FRAMES - 51:
        return {"fade_alpha": max((FRAMES - 1 - frame) / 50, 0)}
    return {}


def _speech(frame: int) -> Json:
    return {"vad_alpha": 0.25} if 100 <= frame < 200 else {}


def _pose(frame: int) -> Json:
    return {"delta_yaw": 20.0, "alpha_yaw": 0.5} if frame >= 150 else {}


COMPOSITIONS = (
    Case("image"),
    Case("video", sources=5),
    Case("no_stitching", controls={"stitching": False}, upstream={"flag_stitching": False}),
    Case("absolute", controls={"relative": False}, upstream={"relative_d": False}),
    Case(
        "key_set",
        controls={"driven_spans": ["expression", "yaw"]},
        upstream={"use_d_keys": ("exp", "yaw")},
    ),
    Case(
        "key_weights",
        controls={"driven_spans": {"expression": 0.7, "pitch": 1.5, "translation": 0.5}},
        upstream={"use_d_keys": {"exp": 0.7, "pitch": 1.5, "t": 0.5}},
    ),
    Case(
        "absolute_weights",
        controls={"relative": False, "driven_spans": {"expression": 0.7, "translation": 0.5}},
        upstream={"relative_d": False, "use_d_keys": {"exp": 0.7, "t": 0.5}},
    ),
    Case("still_eyes", controls={"drive_eyes": False}, upstream={"drive_eye": False}),
    Case(
        "video_driven_eyes", sources=5, controls={"drive_eyes": True}, upstream={"drive_eye": True}
    ),
    Case(
        "random_blinks",
        manifest=BLINKING | {"/motion/composition/blink/gap_frames": 0},
        upstream={"delta_eye_arr": BLINK, "delta_eye_open_n": 0},
        constants=("blink_offsets",),
    ),
    Case(
        "listed_blinks",
        manifest=BLINKING,
        controls={"blink_gap_frames": [33, 20, 9]},
        upstream={"delta_eye_arr": BLINK, "delta_eye_open_n": [33, 20, 9]},
        constants=("blink_offsets",),
    ),
    Case(
        "fade_source",
        controls={"fade_in_frames": 40, "fade_out_frames": 50, "fade_to": "source"},
        upstream={"fade_type": "s"},
        per_frame=_fades,
    ),
    Case(
        "fade_first_frame",
        controls={
            "fade_in_frames": 40,
            "fade_out_frames": 50,
            "fade_to": "first_frame",
            "fade_spans": ["expression", "yaw", "translation"],
        },
        upstream={"fade_type": "d0", "fade_out_keys": ("exp", "yaw", "t")},
        per_frame=_fades,
    ),
    Case(
        "voice_activity",
        controls={"frames": [{"first": 100, "last": 199, "voice_activity": 0.25}]},
        per_frame=_speech,
    ),
    Case(
        "pose_and_expression",
        controls={
            "expression_offset": {
                str(i): [float(v) for v in LIPS_UP[3 * i : 3 * i + 3]] for i in range(21)
            },
            "pose_offset_deg": {"pitch": -6.0, "roll": 4.0},
            "pose_factor": {"pitch": 1.25, "roll": 1.0},
        },
        upstream={
            "overall_ctrl_info": {
                "delta_pitch": -6.0,
                "alpha_pitch": 1.25,
                "delta_roll": 4.0,
                "delta_exp": LIPS_UP[None],
            }
        },
    ),
    Case(
        "pose_in_frames",
        controls={
            "frames": [{"first": 150, "pose_offset_deg": {"yaw": 20}, "pose_factor": {"yaw": 0.5}}]
        },
        per_frame=_pose,
    ),
    Case("character", sources=5, character=True),
    Case(
        "character_weights",
        character=True,
        controls={"driven_spans": {"expression": 0.7, "translation": 0.5}},
        upstream={"use_d_keys": {"exp": 0.7, "t": 0.5}},
    ),
)
