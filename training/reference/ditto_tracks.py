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
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, cast

import numpy as np
import numpy.typing as npt
import onnxruntime as ort
from safetensors.numpy import save

from ditto_track_cases import (
    AUDIO_SAMPLES,
    COMPOSITIONS,
    DIMS,
    FRAMES,
    GAP_STREAM,
    KEYPOINT_STRIDE,
    SEED,
    SPANS,
    TRACK_STRIDE,
    TRACKS,
    Case,
    Floats,
    Json,
    as_info,
    avatar,
    motion_rows,
    scaled_formula,
)
from philox import normal_rows, philox4x32


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
