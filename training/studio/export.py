"""Trained networks to the files that the engine loads: graphs, manifest, avatars."""

from __future__ import annotations

import inspect
import shutil
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import torch
from PIL import Image
from safetensors.numpy import load_file
from torch import Tensor, nn

from studio import graph_files
from studio.faces.desk import add_desk
from studio.faces.identity import Identity
from studio.faces.render import Renderer, canvas_view, neutral_motion
from studio.fit.picture_data import PictureData
from studio.fit.pictures import PictureNets
from studio.manifest import (
    CONDITION_DIMS,
    CROP_PX,
    KEYPOINTS,
    MOTION_DIMS,
    PLANS,
    WINDOW,
    avatar_key,
    write_avatar,
    write_pack,
)
from studio.models.audio_encoder import AudioEncoder
from studio.models.motion_generator import MotionGenerator

_OPSET = 16  # the first with GridSample; older PyTorch knows no later one
_MAPS = {"f64": (64, 64), "f128": (24, 128), "f256": (8, 256)}
# Crop units are 256 crop pixels and 250 pixels of the canvas, around (960, 410).
_CROP_TO_CANVAS = [[500 / 512, 0, 710], [0, 500 / 512, 160]]
# As fp16 these move the features most; convert_prototype/measure_precision.py shows the effect.
_KEPT_F32 = {"audio_encoder": ("a.0", "b.0.c2")}
_BATCHED = ("warp", "decoder")


@dataclass(frozen=True)
class SpeechNets:
    encoder: AudioEncoder
    generator: MotionGenerator
    mean: Tensor
    std: Tensor


def _example(role: str) -> tuple[Tensor, ...]:
    """Inputs of the manifest's shapes, in the order of the module's arguments."""
    torch.manual_seed(0)
    shapes = PLANS[role].inputs
    if role == "motion_generator":
        return (
            torch.randn(1, WINDOW, MOTION_DIMS),
            torch.randn(1, MOTION_DIMS),
            torch.randn(1, WINDOW, CONDITION_DIMS),
            torch.tensor([999]),
        )
    scale = 0.05 if role == "audio_encoder" else 0.2
    return tuple(torch.rand(*shape) * scale for shape in shapes.values())


def export_graph(role: str, module: nn.Module, target: Path) -> None:
    """Writes a graph with the tensor names of the manifest and fp16 weights."""
    plan = PLANS[role]
    names = [*plan.inputs, *plan.outputs]
    settings: dict[str, Any] = {"opset_version": _OPSET}
    if "dynamo" in inspect.signature(torch.onnx.export).parameters:
        settings["dynamo"] = False
    if role in _BATCHED:
        settings["dynamic_axes"] = {name: {0: "batch"} for name in names}
    module = module.cpu().eval()
    with tempfile.TemporaryDirectory() as folder, torch.no_grad():
        raw = Path(folder) / "graph.onnx"
        torch.onnx.export(
            module,
            _example(role),
            str(raw),
            input_names=list(plan.inputs),
            output_names=list(plan.outputs),
            **settings,
        )
        model = graph_files.load(raw)
    graph_files.store_weights_as_half(model, _kept(model, _KEPT_F32.get(role, ())))
    if role in _BATCHED:
        graph_files.make_batch_dynamic(model, names)
    onnx.checker.check_model(model, full_check=True)
    onnx.save(model, str(target))


def _kept(model: onnx.ModelProto, modules: tuple[str, ...]) -> list[str]:
    """Weight names of convolutions by the ends of their modules' names."""
    ends = tuple(f"/{module.replace('.c', '/c')}/Conv" for module in modules)
    stored = {t.name for t in model.graph.initializer}
    return [
        node.input[1]
        for node in model.graph.node
        if node.op_type == "Conv" and node.name.endswith(ends) and node.input[1] in stored
    ]


def export_speech(nets: SpeechNets, folder: Path) -> None:
    export_graph("audio_encoder", nets.encoder, folder / "audio_encoder.onnx")
    export_graph("motion_generator", nets.generator, folder / "motion_generator.onnx")


def export_pictures(nets: PictureNets, folder: Path) -> None:
    for role, module in (
        ("appearance_extractor", nets.appearance),
        ("warp", nets.warp),
        ("decoder", nets.decoder),
        ("motion_extractor", nets.motion_extractor),
    ):
        export_graph(role, module, folder / f"{role}.onnx")


def export_pack(
    speech: SpeechNets, pictures: PictureNets, basis: np.ndarray, folder: Path, version: str
) -> dict[str, Any]:
    """All graphs and pack.json; the folder appears complete or not at all."""
    beside = folder.with_name(folder.name + ".tmp")
    shutil.rmtree(beside, ignore_errors=True)
    beside.mkdir(parents=True)
    export_speech(speech, beside)
    export_pictures(pictures, beside)
    mean, std = speech.mean.cpu().numpy(), speech.std.cpu().numpy()
    manifest = write_pack(beside, basis, mean, std, version)
    shutil.rmtree(folder, ignore_errors=True)
    beside.rename(folder)
    return manifest


@torch.no_grad()
def export_avatar(
    data: PictureData,
    nets: PictureNets,
    person: int,
    name: str,
    identity: Identity,
    manifest: dict[str, Any],
    folder: Path,
    canvas_samples: int = 2,
) -> None:
    """Canvas, source picture and cached tensors of presenter `person`."""
    beside = folder.with_name(folder.name + ".tmp")
    shutil.rmtree(beside, ignore_errors=True)
    beside.mkdir(parents=True)
    canvas = render_canvas(data.renderer, person, canvas_samples)
    if not identity.backdrop.plain:
        canvas = add_desk(canvas, identity.backdrop.accent)
    Image.fromarray(canvas).save(beside / "canvas.png", optimize=True)
    source = torch.tensor([person], device=data.device)
    picture = data.sources.image[source]
    Image.fromarray(picture[0].permute(1, 2, 0).cpu().numpy()).save(
        beside / "source.png", optimize=True
    )
    maps = nets.to(data.device).features(picture.float() / 255, source)
    rest = data.sources.motion[source]
    keypoints, _ = data.keypoints(source, rest)
    tensors = {n: m.detach().cpu().half().numpy() for n, m in zip(_MAPS, maps, strict=True)}
    tensors["rgb"] = picture.cpu().numpy()
    tensors["kp_canonical"] = data.canonical[source].cpu().numpy()
    tensors["kp_source"] = keypoints.cpu().numpy()
    tensors["source_motion"] = rest.cpu().numpy()
    assert tensors["kp_source"].shape == (1, KEYPOINTS, 3)
    assert tensors["rgb"].shape[-1] == CROP_PX
    title = name.capitalize()
    write_avatar(beside, name, title, avatar_key(manifest), _CROP_TO_CANVAS, tensors)
    shutil.rmtree(folder, ignore_errors=True)
    beside.rename(folder)


def render_canvas(renderer: Renderer, person: int, samples: int = 2) -> np.ndarray:
    """The presenter at rest on the whole canvas, 1920 x 1080."""
    device = renderer.model.device
    motion, body = neutral_motion(1, device)
    ids = torch.tensor([person], device=device)
    image = renderer.render(ids, motion, body, canvas_view(samples)).image[0]
    return (image.permute(1, 2, 0) * 255).round().to(torch.uint8).cpu().numpy()


def replace_speech(nets: SpeechNets, folder: Path, version: str) -> dict[str, Any]:
    """Puts speech networks into a pack folder and writes its manifest anew."""
    export_speech(nets, folder)
    basis = load_file(folder / "constants.safetensors")["expression_basis"]
    return write_pack(folder, basis, nets.mean.cpu().numpy(), nets.std.cpu().numpy(), version)
