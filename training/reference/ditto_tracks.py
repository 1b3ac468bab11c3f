"""Golden motion tracks and compositions, made by upstream's own modules.

    python ditto_tracks.py UPSTREAM PACK -o tests/golden/ditto

UPSTREAM is a checkout of antgroup/ditto-talkinghead, PACK a seeded pack (width 0.125). Upstream's
condition handler, motion generator loop, motion stitcher and audio chunking run here as they are.
Given to them are the networks (ONNX Runtime), noise by docs/noise.md instead of NumPy's, and the
gaps between blinks. tracks.json holds each case in the engine's words, tracks.safetensors what
upstream made of it; every input is the formula of docs/parity.md.
"""

from __future__ import annotations

import argparse
import importlib
import json
import random
import sys
import types
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

import numpy as np
import numpy.typing as npt
import onnxruntime as ort
from safetensors.numpy import save

from philox import normal_rows, philox4x32

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


class Upstream:
    """Upstream's classes around networks that run here."""

    def __init__(self, checkout: Path, pack: Path) -> None:
        sys.path.insert(0, str(checkout))
        # Upstream imports it for resampling, which does not happen here.
        sys.modules.setdefault("librosa", types.ModuleType("librosa"))
        self.modules = {
            name: importlib.import_module(f"core.{path}")
            for name, path in {
                "audio2motion": "atomic_components.audio2motion",
                "conditions": "atomic_components.condition_handler",
                "stitch": "atomic_components.motion_stitch",
                "wav2feat": "atomic_components.wav2feat",
                "lmdm": "models.lmdm",
            }.items()
        }
        self.sessions = {
            role: ort.InferenceSession(str(pack / f"{role}.onnx"))
            for role in ("audio_encoder", "motion_generator", "stitch")
        }

    def run(self, role: str, inputs: dict[str, Floats]) -> list[Floats]:
        return cast(list[Floats], self.sessions[role].run(None, inputs))

    def generator(self, steps: int, eta: float) -> Any:  # noqa: ANN401
        """Upstream's LMDM in its ONNX form."""
        lmdm = object.__new__(self.modules["lmdm"].LMDM)
        lmdm.model, lmdm.model_type, lmdm.device = self.sessions["motion_generator"], "onnx", "cpu"
        lmdm.motion_feat_dim, lmdm.seq_frames = DIMS, 80
        lmdm._init_np()
        lmdm.setup(steps)
        if eta == 0:  # upstream's own sampler has eta 1 only
            following = [a for _, a in lmdm.time_pairs if a >= 0]
            lmdm.sigma_list = [np.float32(0)] * len(following)
            lmdm.c_list = [np.sqrt(1 - lmdm.alphas_cumprod[a]) for a in following]
        return lmdm

    def conditions(self, features: Floats, first_frame: int, case: Case) -> Floats:
        handler = self.modules["conditions"].ConditionHandler()
        handler.setup(
            avatar("source", case.sources),
            case.upstream.get("emo", 4),
            eye_f0_mode=case.upstream.get("eye_f0_mode", False),
            ch_info=avatar("character", 2) if case.character else None,
        )
        return cast(Floats, handler(features, first_frame))


@contextmanager
def own_noise(first_frame: int) -> Iterator[None]:
    """The window's initial latent by docs/noise.md."""
    original = np.random.randn

    def randn(*shape: int) -> npt.NDArray[np.float64]:
        rows = normal_rows(SEED, first_frame, shape[1], shape[2])
        return rows.reshape(shape).astype(np.float64)

    np.random.randn = cast(Any, randn)
    try:
        yield
    finally:
        np.random.randn = original


def track(upstream: Upstream, case: Case, lead_in: Floats) -> tuple[Floats, Floats]:
    """[FRAMES, DIMS] of motion and the row that relative driving starts from."""
    options = dict(case.upstream)
    stochastic = options.get("sampling_timesteps") is not None
    lmdm = upstream.generator(options.get("sampling_timesteps", 4), 1.0 if stochastic else 0.0)
    a2m = object.__new__(upstream.modules["audio2motion"].Audio2Motion)
    a2m.lmdm = lmdm
    online = options.get("online_mode", False)
    person = avatar("character", 2) if case.character else avatar("source", case.sources)
    sigma, c = list(lmdm.sigma_list), list(lmdm.c_list)
    a2m.setup(
        person["x_s_info_lst"][0],
        overlap_v2=options.get("overlap_v2", 10),
        fix_kp_cond=options.get("fix_kp_cond", 0),
        fix_kp_cond_dim=options.get("fix_kp_cond_dim"),
        sampling_timesteps=lmdm.sampling_timesteps,
        online_mode=online,
        v_min_max_for_clip=options.get("v_min_max_for_clip"),
    )
    lmdm.sigma_list, lmdm.c_list = sigma, c
    features = scaled_formula("features", (FRAMES, lead_in.shape[1]), -1.0, 1.0)
    first = 0
    if online:
        first = -a2m.overlap_v2
        features = np.concatenate([np.tile(lead_in, (a2m.overlap_v2 // 2, 1)), features])
    result = None
    start = 0
    while start < len(features):
        window = features[start : start + 80]
        if online and start > 0 and len(window) <= a2m.overlap_v2 - 1:
            break
        window = np.concatenate([window, np.repeat(window[-1:], 80 - len(window), axis=0)])
        conditions = upstream.conditions(window, first + start, case)
        real = len(features) - start
        if real < 80 and not online:  # online it is the features that are repeated
            conditions[real:] = conditions[real - 1]
        if stochastic:
            lmdm.noise_list = [
                normal_rows(SEED, first + start, 80, DIMS, step + 1)[None]
                for step in range(len(sigma))
            ]
        with own_noise(first + start):
            result = a2m(conditions[None].astype(np.float32), result)
        start += a2m.valid_clip_len
    assert result is not None
    reference = result[:, :1]
    if online:
        # The first window's end, then valid_clip_len per window: frames from the lead-in's end on.
        result = result[:, a2m.overlap_v2 :][:, :FRAMES]
    else:
        result = result[:, :FRAMES]
        result = a2m._smo(result, 0, result.shape[1])
    infos = a2m.cvt_fmt(result)
    reference_info = a2m.cvt_fmt(reference)[0]
    return np.concatenate([to_row(info) for info in infos]), to_row(reference_info)


def to_row(info: dict[str, Floats]) -> Floats:
    parts = [info[span] - 1 if span == "scale" else info[span] for span in SPANS]
    return np.concatenate(parts, axis=1).astype(np.float32)


def blink_gaps() -> Iterator[int]:
    index = 0
    while True:
        counter = np.array([[index, GAP_STREAM, 0, 0]], np.uint32)
        word = philox4x32(counter, np.array([[SEED, 0]], np.uint32))[0, 0]
        yield 60 + int(word) % 41
        index += 1


def composition(upstream: Upstream, case: Case) -> tuple[Floats, Floats]:
    """Source and driving keypoints [FRAMES, 63] of made-up driving motion."""
    module = upstream.modules["stitch"]
    stitch = object.__new__(module.MotionStitch)
    stitch.stitch_net = lambda source, driving: upstream.run(
        "stitch",
        {
            "kp_source": source.astype(np.float32).reshape(1, 21, 3),
            "kp_driving": driving.astype(np.float32).reshape(1, 21, 3),
        },
    )[0]
    gaps = blink_gaps()
    calls = 0

    def randint(_low: int, _high: int) -> int:
        # Upstream draws the gap before the end second. The engine, which may not know where the
        # end is, only leaves out a blink that would be cut.
        nonlocal calls
        calls += 1
        return 0 if calls == 2 else next(gaps)

    info = avatar("source", case.sources)
    original, random.randint = random.randint, randint
    try:
        stitch.setup(
            N_d=FRAMES,
            is_image_flag=info["is_image_flag"],
            x_s_info=info["x_s_info_lst"][0],
            ch_info=avatar("character", 2) if case.character else None,
            **case.upstream,
        )
    finally:
        random.randint = original
    rows = motion_rows("driving", FRAMES)
    found: tuple[list[Floats], list[Floats]] = ([], [])
    for frame in range(FRAMES):
        turn, place = divmod(frame, case.sources)
        source = place if turn % 2 == 0 else case.sources - place - 1
        pair = stitch(
            dict(info["x_s_info_lst"][source]), as_info(rows[frame]), **case.per_frame(frame)
        )
        for target, value in zip(found, pair, strict=True):
            target.append(np.asarray(value, np.float32).reshape(63))
    return np.stack(found[0]), np.stack(found[1])


def features(upstream: Upstream) -> dict[str, Floats]:
    """Upstream's chunking of audio; its 1024 dims are padded, as the small encoder has fewer."""
    wav2feat = object.__new__(upstream.modules["wav2feat"].Wav2FeatHubert)
    dims = 0

    def encoder(chunk: Floats) -> Floats:
        nonlocal dims
        rows = upstream.run("audio_encoder", {"input_values": chunk.reshape(1, -1)})[0][0]
        dims = rows.shape[1]
        return np.pad(rows, ((0, 0), (0, 1024 - dims)))

    wav2feat.hubert = encoder
    audio = scaled_formula("audio", (AUDIO_SAMPLES,), -0.1, 0.1)
    offline = cast(Floats, wav2feat.wav2feat(audio, sr=16000))
    # As upstream's inference.py feeds its online mode: 3 frames of silence, then steps of 5 frames.
    padded = np.concatenate([np.zeros(3 * 640, np.float32), audio])
    chunks = [padded[start : start + 6480] for start in range(0, len(audio), 5 * 640)]
    online = [wav2feat(np.pad(chunk, (0, 6480 - len(chunk)))) for chunk in chunks]
    frames = len(offline)
    return {
        "features.offline": np.ascontiguousarray(offline[:, :dims], np.float32),
        "features.online": np.ascontiguousarray(np.concatenate(online)[:frames, :dims], np.float32),
    }


def entry(case: Case, stride: int, tensors: list[str]) -> Json:
    return {
        "name": case.name,
        "sources": case.sources,
        "character": case.character,
        "manifest": case.manifest,
        "constants": list(case.constants),
        "controls": case.controls,
        "stride": stride,
        "tensors": tensors,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("upstream", type=Path, metavar="UPSTREAM")
    parser.add_argument("pack", type=Path, metavar="PACK")
    parser.add_argument("-o", "--output", type=Path, required=True, metavar="DIR")
    parser.add_argument("--all-frames", action="store_true", help="keep every frame")
    options = parser.parse_args()
    upstream = Upstream(options.upstream, options.pack)
    track_stride = 1 if options.all_frames else TRACK_STRIDE
    keypoint_stride = 1 if options.all_frames else KEYPOINT_STRIDE

    tensors = features(upstream)
    lead_in = scaled_formula("lead_in", (2, tensors["features.online"].shape[1]), -1.0, 1.0)
    description: Json = {
        "frames": FRAMES,
        "seed": SEED,
        "audio_samples": AUDIO_SAMPLES,
        "spans": [[name, size, half] for name, (size, half) in SPANS.items()],
        "tracks": [],
        "compositions": [],
    }
    for case in TRACKS:
        rows, reference = track(upstream, case, lead_in)
        names = [f"track.{case.name}", f"reference.{case.name}"]
        tensors[names[0]] = np.ascontiguousarray(rows[::track_stride])
        tensors[names[1]] = reference
        description["tracks"].append(entry(case, track_stride, names))
        print(f"{case.name}: {rows.shape}, std {rows.std():.3f}", file=sys.stderr)
    for case in COMPOSITIONS:
        _, driving = composition(upstream, case)
        name = f"keypoints.{case.name}"
        tensors[name] = np.ascontiguousarray(driving[::keypoint_stride])
        description["compositions"].append(entry(case, keypoint_stride, [name]))
        print(f"{case.name}: std {driving.std():.3f}", file=sys.stderr)
    options.output.mkdir(parents=True, exist_ok=True)
    (options.output / "tracks.safetensors").write_bytes(save(tensors))
    (options.output / "tracks.json").write_text(
        json.dumps(description, indent=1) + "\n", encoding="utf-8"
    )


if __name__ == "__main__":
    main()
