"""Makes folders of the released form, with seeded weights at test size."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import torch
from onnx import ModelProto, helper

from ditto.config import DittoConfig
from newscaster_tools.checkpoints import NESTED_KEYS, PTH_FILES, SUBMODULES
from newscaster_tools.export_ditto import export_network, seeded_network
from newscaster_tools.release import HUBERT_OF_PYTORCH, ONNX_FILES, RELEASED_INPUTS

CONFIG = DittoConfig(width=0.125, image_size=128)
SIZES = ["--width", "0.125", "--image-size", "128"]
SEED = 3
RELEASED_OUTPUTS = {
    "stitch": {"kp_stitched": "out"},
    "appearance_extractor": {"f_s": "pred"},
    "warp": {"feature": "out"},
    "decoder": {"image": "output"},
}


def rename(model: ModelProto, names: dict[str, str]) -> None:
    for node in model.graph.node:
        node.input[:] = [names.get(name, name) for name in node.input]
        node.output[:] = [names.get(name, name) for name in node.output]
    for value in (*model.graph.input, *model.graph.output):
        value.name = names.get(value.name, value.name)


def legacy_samplers(model: ModelProto) -> int:
    """GridSample -> the plug-in node, as in the release's warp_network.onnx. Opset 17."""
    count = 0
    for node in model.graph.node:
        if node.op_type == "GridSample":
            node.op_type = "GridSample3D"
            del node.attribute[:]
            for key in ("interpolation_mode", "padding_mode", "align_corners"):
                node.attribute.append(helper.make_attribute(key, 0))
            count += 1
    del model.opset_import[:]
    model.opset_import.append(helper.make_opsetid("", 17))
    return count


def without_leading_axis(model: ModelProto) -> None:
    """The released HuBERT graph yields [rows, dims]."""
    output = model.graph.output[0]
    rename(model, {output.name: "batched"})
    axes = onnx.numpy_helper.from_array(np.zeros(1, dtype=np.int64), "zero")
    model.graph.initializer.append(axes)
    model.graph.node.append(helper.make_node("Squeeze", ["batched", "zero"], ["encoding_out"]))
    dims = [dim.dim_value for dim in output.type.tensor_type.shape.dim][1:]
    output.CopyFrom(helper.make_tensor_value_info("encoding_out", onnx.TensorProto.FLOAT, dims))


def released_graph(role: str, path: Path, plugin: bool = True) -> None:
    export_network(role, seeded_network(role, CONFIG, SEED), CONFIG, path)
    model = onnx.load(path)
    names = {**RELEASED_INPUTS.get(role, {}), **RELEASED_OUTPUTS.get(role, {})}
    rename(model, names)
    if role == "audio_encoder":
        without_leading_axis(model)
    if role == "warp" and plugin:
        legacy_samplers(model)
    onnx.save(model, path)


def cfg_content(**changes: Any) -> dict[str, Any]:  # noqa: ANN401
    rng = np.random.default_rng(5)
    model_path = {"model_path": "x.onnx", "device": "cuda"}
    content: dict[str, Any] = {
        "base_cfg": {name: dict(model_path) for name in ("hubert_cfg", "decoder_cfg")},
        "audio2motion_cfg": {
            **model_path,
            "w2f_type": "hubert",
            "motion_feat_dim": CONFIG.motion_dims,
            "audio_feat_dim": CONFIG.condition_dims,
            "seq_frames": 80,
            "use_emo": True,
            "use_sc": True,
            "use_eye_open": True,
            "use_eye_ball": True,
        },
        "default_kwargs": {
            "sampling_timesteps": 50,
            "emo": 4,
            "v_min_max_for_clip": np.sort(
                rng.normal(size=(2, CONFIG.motion_dims)).astype(np.float32), axis=0
            ),
            "delta_eye_arr": rng.normal(size=(15, 63)).astype(np.float32),
            "delta_eye_open_n": 0,
            "fade_out_keys": ("exp",),
            "crop_scale": np.float64(2.3).item(),
        },
    }
    content["default_kwargs"].update(changes)
    return content


def write_cfg(folder: Path, name: str = "v0.4_hubert_cfg_trt.pkl", protocol: int = 4) -> Path:
    target = folder / "ditto_cfg" / name
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_bytes(pickle.dumps(cfg_content(), protocol=protocol))
    return target


def write_onnx_release(folder: Path) -> Path:
    graphs = folder / "ditto_onnx"
    graphs.mkdir(parents=True)
    for role, name in ONNX_FILES.items():
        released_graph(role, graphs / name)
    write_cfg(folder)
    return folder


def write_pytorch_release(folder: Path) -> Path:
    models = folder / "ditto_pytorch" / "models"
    models.mkdir(parents=True)
    for role, name in PTH_FILES.items():
        network = seeded_network(role, CONFIG, SEED).get_submodule(SUBMODULES.get(role, ""))
        state: dict[str, Any] = dict(network.state_dict())
        if role == "stitch":
            state = {f"module.{key}": value for key, value in state.items()}
        if role in NESTED_KEYS:
            state = {NESTED_KEYS[role]: state, "epoch": 3}
        torch.save(state, models / name)
    aux = folder / "ditto_pytorch" / "aux_models"
    aux.mkdir()
    released_graph("audio_encoder", aux / HUBERT_OF_PYTORCH)
    write_cfg(folder, "v0.4_hubert_cfg_pytorch.pkl")
    return folder
