"""Weights out of a pack's graphs, to begin training from: audio encoder and motion generator."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import torch
from onnx import numpy_helper
from safetensors.numpy import load_file
from torch import Tensor, nn

from studio.models.audio_encoder import AudioEncoder
from studio.models.motion_generator import MotionGenerator
from studio.voices.arkit import YAW

# Names in graphs of version 1.0.0 of the pack that differ from the modules' of today.
_RENAMED = {"z": "latent", "pros": "prosody", "ph": "phones", "L": "layers"}


def _module_of(node_name: str) -> str:
    """/b/b.0/c1/Conv -> b.0.c1"""
    path = ""
    for part in node_name.strip("/").split("/")[:-1]:
        nested = not path or part.startswith(path + ".")
        path = part if nested else f"{path}.{part}"
    first, _, rest = path.partition(".")
    first = _RENAMED.get(first, first)
    return f"{first}.{rest}" if rest else first


def _values(model: onnx.ModelProto) -> dict[str, np.ndarray]:
    values = {t.name: numpy_helper.to_array(t) for t in model.graph.initializer}
    for node in model.graph.node:
        if node.op_type == "Cast" and node.input[0] in values:
            values[node.output[0]] = values[node.input[0]].astype(np.float32)
    return values


def _load_linear(module: nn.Module, graph: onnx.ModelProto) -> set[str]:
    """Weights and biases of every convolution and linear layer found in both; returns them."""
    values, modules, loaded = _values(graph), dict(module.named_modules()), set()
    state = module.state_dict()
    for node in graph.graph.node:
        name = _module_of(node.name)
        if node.op_type not in ("Conv", "Gemm", "MatMul") or name not in modules:
            continue
        stored = [values[i] for i in node.input[1:] if i in values]
        if not stored:
            continue
        weight = stored[0].T if node.op_type == "MatMul" else stored[0]
        state[f"{name}.weight"].copy_(torch.from_numpy(np.array(weight, np.float32)))
        bias = stored[1] if len(stored) > 1 else values.get(f"{node.name.strip('/')}.bias")
        if bias is None:
            bias = next(v for k, v in values.items() if k.endswith(".bias") and _same(k, name))
        state[f"{name}.bias"].copy_(torch.from_numpy(np.array(bias, np.float32)))
        loaded.add(name)
    return loaded


def _same(tensor: str, module: str) -> bool:
    first, _, rest = tensor.removesuffix(".bias").partition(".")
    first = _RENAMED.get(first, first)
    return (f"{first}.{rest}" if rest else first) == module


def audio_encoder_state(path: Path, samples: Tensor) -> dict[str, Tensor]:
    """The export folded batch norms into convolutions; they are set to do nothing on `samples`.

    `samples` [B, S] is typical sound: every norm gets its input's statistics there, as running
    statistics and as its own scale and shift, so that training starts from the same function.
    """
    graph, model = onnx.load(path), AudioEncoder()
    loaded = _load_linear(model, graph)
    values = _values(graph)
    for name in ("weight", "bias", "running_mean", "running_var"):
        model.n0.state_dict()[name].copy_(torch.from_numpy(values[f"n0.{name}"].copy()))
    wanted = {n for n, m in model.named_modules() if isinstance(m, nn.Conv1d)}
    if wanted - loaded != {"lips_from_latent"}:
        raise ValueError(f"{path}: convolutions {sorted(wanted - loaded)} not found in the graph")

    def settle(norm: nn.Module, inputs: tuple[Tensor, ...]) -> None:
        assert isinstance(norm, nn.BatchNorm1d)
        mean = inputs[0].mean((0, 2))
        variance = inputs[0].var((0, 2), unbiased=False)
        assert norm.running_mean is not None and norm.running_var is not None
        norm.running_mean.copy_(mean)
        norm.running_var.copy_(variance)
        norm.weight.data.copy_((variance + norm.eps).sqrt())
        norm.bias.data.copy_(mean)

    norms = [m for n, m in model.named_modules() if isinstance(m, nn.BatchNorm1d) and n != "n0"]
    hooks = [norm.register_forward_pre_hook(settle) for norm in norms]
    model.eval()
    with torch.no_grad():
        model(samples)
    for hook in hooks:
        hook.remove()
    return model.state_dict()


def motion_generator_state(path: Path) -> dict[str, Tensor]:
    """Also undoes the mirrored yaw that version 1.0.0 has around its graph."""
    graph, model = onnx.load(path), MotionGenerator()
    values = _values(graph)
    loaded = _load_linear(model, graph)
    kinds = (nn.Linear, nn.Conv1d)
    missing = {n for n, m in model.named_modules() if isinstance(m, kinds)} - loaded
    if missing:
        raise ValueError(f"{path}: layers {sorted(missing)} not found in the graph")
    state = model.state_dict()
    state["pos"].copy_(torch.from_numpy(values["pos"].astype(np.float32)))
    for name in ("no.weight", "no.bias"):
        state[name].copy_(torch.from_numpy(values[name].copy()))
    if "x_sign" in values:
        for name in ("xin.weight", "fin.weight"):
            state[name][:, YAW] *= -1
        for name in ("out.weight", "out.bias", "skip.weight", "skip.bias"):
            state[name][YAW] *= -1
    return state


def motion_statistics(path: Path) -> tuple[Tensor, Tensor]:
    """Mean and standard deviation that normalise the pack's motion."""
    constants = load_file(path)
    return torch.from_numpy(constants["motion_mean"]), torch.from_numpy(constants["motion_std"])
