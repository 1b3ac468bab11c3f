"""Turns the model prototype (ONNX + npz files) into the pack `studio` and its avatars.

    PYTHONPATH=.. python convert_prototype.py PROTOTYPE --packs ../../packs --avatars ../../avatars

The formats are described in docs/pack-format.md and docs/avatar-format.md. LICENSE and
MODEL_CARD.md of the pack are written by hand and left alone. The same input gives the same bytes.
"""

from __future__ import annotations

import argparse
import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import onnx
from PIL import Image
from studio import graph_files
from studio.manifest import PACK_NAME, avatar_key, write_avatar, write_pack
from studio.voices.arkit import ARKIT

import onnx_rewrite

Array = npt.NDArray[Any]

AVATARS = {"anna": "Anna", "marcus": "Marcus", "mei": "Mei"}
SOURCES = {
    "audio_encoder": "audio/audio_encoder.onnx",
    "motion_generator": "audio/lmdm.onnx",
    "warp": "visual/onnx/warp_network.fp16.onnx",
    "decoder": "visual/onnx/decoder.fp16.onnx",
    "appearance_extractor": "visual/onnx/appearance_extractor.fp16.onnx",
    "motion_extractor": "visual/onnx/motion_extractor.fp16.onnx",
}

# Tensors of the motion generator that hold motion vectors, and the yaw in them.
MOTION_TENSORS = ["x", "cond_frame", "pred_noise", "x_start"]
YAW_DIM = 2

# The anchor pictures show the desk too low: rows of its top and front, and where the top goes.
DESK_TOP_Y = 900
DESK_FRONT_Y = 960
DESK_RAISED_Y = 765

# Large initialisers that stay f32, because as fp16 they move the features (the first convolution)
# and the denoised motion (the next one) most; measure_precision.py shows the effect.
KEEP_F32 = {"audio_encoder": ["onnx::Conv_386", "onnx::Conv_395"]}


def convert_graph(role: str, prototype: Path, target: Path) -> None:
    model = graph_files.load(prototype / SOURCES[role])
    if role in ("audio_encoder", "motion_generator"):
        graph_files.store_weights_as_half(model, KEEP_F32.get(role, []))
    if role == "motion_generator":
        # Learnt with +yaw = the subject's left, the opposite of the composition's rotation:
        # unmirrored, the eyes would lead the turning head instead of staying on the camera.
        onnx_rewrite.mirror_dims(model, MOTION_TENSORS, [YAW_DIM])
    if role == "warp":
        onnx_rewrite.free_batch_of_warp(model)
    if role == "decoder":
        names = [v.name for v in [*model.graph.input, *model.graph.output]]
        graph_files.make_batch_dynamic(model, names)
    onnx.checker.check_model(model, full_check=True)
    onnx.save(model, target)


def convert_pack(prototype: Path, folder: Path) -> dict[str, Any]:
    folder.mkdir(parents=True, exist_ok=True)
    with np.load(prototype / "visual/avatars/kp_basis.npz") as stored:
        basis, channels = stored["basis"], [str(name) for name in stored["arkit"]]
    with np.load(prototype / "audio/stats.npz") as stored:
        mean, std = stored["mean"].astype(np.float32), stored["std"].astype(np.float32)
    mean[YAW_DIM] = -mean[YAW_DIM]
    for role in SOURCES:
        convert_graph(role, prototype, folder / f"{role}.onnx")
    if channels != list(ARKIT):
        raise ValueError(f"{prototype}: the basis has other channels than ARKit's 52")
    return write_pack(folder, basis, mean, std)


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
    crop = facts["crop_to_canvas"]
    write_avatar(folder, name, AVATARS[name], key, crop, tensors)


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
