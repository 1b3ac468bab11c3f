"""Turns the model prototype (ONNX + npz files) into the pack `studio` and its avatars.

    python convert_prototype.py PROTOTYPE_FOLDER --packs ../../packs --avatars ../../avatars

The formats are described in docs/pack-format.md and docs/avatar-format.md. LICENSE and
MODEL_CARD.md of the pack are written by hand and left alone. The same input gives the same bytes.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import shutil
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import onnx
from PIL import Image
from safetensors.numpy import save

import onnx_rewrite

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
AVATARS = {"anna": "Anna", "marcus": "Marcus", "mei": "Mei"}
EMOTIONS = ["angry", "disgust", "fear", "happy", "neutral", "sad", "surprise", "contempt"]

# A keypoint belongs to a group when one of the group's channels at full value moves it at least
# this far (crop = [-1,1]; 0.04 is ten pixels of 512).
LIPS_MIN_MOVE = 0.04
EYES_MIN_MOVE = 0.01

# Tensors of the motion generator that hold motion vectors, and the yaw in them.
MOTION_TENSORS = ["x", "cond_frame", "pred_noise", "x_start"]
YAW_DIM = 2

# The anchor pictures show the desk too low: rows of its top and front, and where the top goes.
DESK_TOP_Y = 900
DESK_FRONT_Y = 960
DESK_RAISED_Y = 765

MAPS = {"f64": [1, 64, 64, 64], "f128": [1, 24, 128, 128], "f256": [1, 8, 256, 256]}
POINTS = [1, KEYPOINTS, 3]
FLOW = {
    "flow": [1, 2, 128, 128],
    "occlusion": [1, 1, 128, 128],
    "z": [1, 160],
    "field": [1, 84, 64, 64],
}
PICTURE = [1, 3, CROP_PX, CROP_PX]


# Columns of the audio encoder's phone logits.
PHONES = [
    "sil", "iy", "ih", "eh", "ae", "aa", "ah", "ax", "ao", "ow", "uh", "uw", "er", "yy", "oe",
    "p", "b", "m", "f", "v", "th", "dh", "t", "d", "n", "s", "z", "sh",
    "zh", "ch", "jh", "k", "g", "ng", "l", "r", "w", "y", "hh", "x",
]  # fmt: skip


@dataclass(frozen=True)
class GraphPlan:
    """Where a graph comes from and what the manifest says about it."""

    source: str
    inputs: dict[str, list[int]]
    outputs: dict[str, list[int]]
    bindings: dict[str, str]
    precisions: list[str] = field(default_factory=lambda: ["f32"])


PLANS = {
    "audio_encoder": GraphPlan(
        "audio/audio_encoder.onnx",
        {"wav": [1, CHUNK_SAMPLES]},
        {
            "feat": [1, CHUNK_FRAMES["present_frames"], FEATURE_DIMS],
            "phone_logits": [1, CHUNK_FRAMES["present_frames"], len(PHONES)],
        },
        {"audio": "wav", "features": "feat", "phones": "phone_logits"},
    ),
    "motion_generator": GraphPlan(
        "audio/lmdm.onnx",
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
    ),
    "warp": GraphPlan(
        "visual/onnx/warp_network.fp16.onnx",
        {"f64": MAPS["f64"], "kp_source": POINTS, "kp_driving": POINTS},
        FLOW,
        {"source_keypoints": "kp_source", "driving_keypoints": "kp_driving"},
        ["f32", "bf16", "f16"],
    ),
    "decoder": GraphPlan(
        "visual/onnx/decoder.fp16.onnx",
        {**MAPS, "rgb": PICTURE, **FLOW},
        {"out": PICTURE},
        {"source_image": "rgb", "image": "out"},
        ["f32", "bf16", "f16"],
    ),
    "appearance_extractor": GraphPlan(
        "visual/onnx/appearance_extractor.fp16.onnx", {"source": PICTURE}, MAPS, {"image": "source"}
    ),
    "motion_extractor": GraphPlan(
        "visual/onnx/motion_extractor.fp16.onnx",
        {"image": [1, 3, 256, 256]},
        {"motion": [1, MOTION_DIMS], "kp_canonical": POINTS},
        {"image": "image", "motion": "motion", "canonical_keypoints": "kp_canonical"},
    ),
}

# The presenters' crops as the face landmarks see them: mean of the three, spread 3 % and 0.006.
FRAMING = {"scale": 2.9, "shift_x": 0.0, "shift_y": -0.088, "rotate": True}

# Large initialisers that stay f32, because as fp16 they move the features (the first convolution)
# and the denoised motion (the next one) most; measure_precision.py shows the effect.
KEEP_F32 = {"audio_encoder": ["onnx::Conv_386", "onnx::Conv_395"]}


def sha256_of(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def write_json(path: Path, value: dict[str, Any]) -> None:
    path.write_text(json.dumps(value, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")


def convert_graph(role: str, prototype: Path, target: Path) -> None:
    model = onnx_rewrite.load(prototype / PLANS[role].source)
    if role in ("audio_encoder", "motion_generator"):
        onnx_rewrite.store_weights_as_half(model, KEEP_F32.get(role, []))
    if role == "motion_generator":
        # Learnt with +yaw = the subject's left, the opposite of the composition's rotation:
        # unmirrored, the eyes would lead the turning head instead of staying on the camera.
        onnx_rewrite.mirror_dims(model, MOTION_TENSORS, [YAW_DIM])
    if role == "warp":
        onnx_rewrite.free_batch_of_warp(model)
    if role == "decoder":
        names = [v.name for v in [*model.graph.input, *model.graph.output]]
        onnx_rewrite.make_batch_dynamic(model, names)
    onnx.checker.check_model(model, full_check=True)
    onnx.save(model, target)


def graph_entry(role: str, file: Path) -> dict[str, Any]:
    plan = PLANS[role]
    inputs, outputs = onnx_rewrite.signature(onnx.load(file))
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


def convert_pack(prototype: Path, folder: Path) -> dict[str, Any]:
    folder.mkdir(parents=True, exist_ok=True)
    with np.load(prototype / "visual/avatars/kp_basis.npz") as stored:
        basis, channels = stored["basis"], [str(name) for name in stored["arkit"]]
    with np.load(prototype / "audio/stats.npz") as stored:
        mean, std = stored["mean"].astype(np.float32), stored["std"].astype(np.float32)
    mean[YAW_DIM] = -mean[YAW_DIM]
    constants = folder / "constants.safetensors"
    tensors = {"expression_basis": basis, "motion_mean": mean, "motion_std": std}
    constants.write_bytes(save(tensors))
    for role in PLANS:
        convert_graph(role, prototype, folder / f"{role}.onnx")
    manifest = {
        "format": "newscaster-pack",
        "schema_version": 1,
        "name": PACK_NAME,
        "version": PACK_VERSION,
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
            "phones": PHONES,
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


def convert_avatar(name: str, prototype: Path, folder: Path, key: str) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    source = prototype / "visual/avatars"
    facts = json.loads((source / "meta.json").read_text(encoding="utf-8"))[name]
    canvas = raise_desk(read_rgb(source / f"{name}_anchor_1920x1080.png"))
    Image.fromarray(canvas).save(folder / "canvas.png", optimize=True)
    shutil.copyfile(source / f"{name}_source512.png", folder / "source.png")
    with np.load(source / f"{name}.npz") as stored:
        tensors: dict[str, Array] = {part: stored[part][None] for part in stored.files}
    tensors["rgb"] = read_rgb(folder / "source.png").transpose(2, 0, 1)[None]
    file = folder / "tensors.safetensors"
    file.write_bytes(save({name: np.ascontiguousarray(t) for name, t in tensors.items()}))
    write_json(
        folder / "avatar.json",
        {
            "format": "newscaster-avatar",
            "schema_version": 1,
            "name": name,
            "title": AVATARS[name],
            "license": LICENSE,
            "pack": {"name": PACK_NAME, "avatar_key": key},
            "canvas": {"width": 1920, "height": 1080, "files": ["canvas.png"]},
            "source_frames": [{"crop_to_canvas": facts["crop_to_canvas"]}],
            "tensors": {"file": file.name, "sha256": sha256_of(file)},
        },
    )


def raise_desk(picture: Array) -> Array:
    """Moves the news desk up, its front stretched to the lower edge: a chest-up anchor shot."""
    top = picture[DESK_TOP_Y:DESK_FRONT_Y]
    front = Image.fromarray(picture[DESK_FRONT_Y:])
    height = picture.shape[0] - DESK_RAISED_Y - len(top)
    stretched = front.resize((picture.shape[1], height), Image.Resampling.BICUBIC)
    return np.concatenate([picture[:DESK_RAISED_Y], top, np.asarray(stretched)])


def read_rgb(path: Path) -> Array:
    with Image.open(path) as picture:
        return np.asarray(picture.convert("RGB"), dtype=np.uint8)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("prototype", type=Path, help="folder with audio/ and visual/")
    parser.add_argument("--packs", type=Path, required=True, help="folder that gets studio/")
    parser.add_argument("--avatars", type=Path, required=True, help="folder that gets anna/ ...")
    options = parser.parse_args()
    manifest = convert_pack(options.prototype, options.packs / PACK_NAME)
    key = avatar_key(manifest)
    for name in AVATARS:
        convert_avatar(name, options.prototype, options.avatars / name, key)


if __name__ == "__main__":
    main()
