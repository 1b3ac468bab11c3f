"""Deterministic random weights, so that graphs of the full architecture exist without a release.

Every tensor's values depend only on the seed, the tensor's name and its shape: they come from
Philox 4x64-10 counters (NumPy's raw stream, which it keeps stable), not from PyTorch's generator.
Gains keep activations of every network within a few units, and the heads that mean something
(keypoints, poses, expressions) are centred on a plausible frontal face, so that a seeded pack
renders through the whole engine: the picture is noise, its cost is that of the real networks.
"""

from __future__ import annotations

import hashlib
import math

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor, nn

from ditto.blocks import SpectralConv2d

# Last layer of each residual branch: small, so that depth does not inflate the sum.
RESIDUAL_ENDS = ("conv2", "conv_1", "pwconv2", "linear2", "out_proj", "output_dense")
RESIDUAL_GAIN = 0.4
# Head -> (gain of the weights, half range of the biases).
HEADS = {
    "fc_kp": (0.02, 0.3),
    "fc_exp": (0.02, 0.01),
    "fc_scale": (0.02, 0.02),
    "fc_t": (0.02, 0.02),
    "mlp.6": (0.002, 0.002),
}
POSE_HEADS = ("fc_pitch", "fc_yaw", "fc_roll")
POSE_CURVE = 200.0  # logits of the bins: -(bin - middle)^2 / POSE_CURVE
MOTION_GAIN = 0.02


def uniform(seed: int, name: str, shape: torch.Size | tuple[int, ...]) -> npt.NDArray[np.float32]:
    """Values in [-1, 1) that depend on nothing but the arguments."""
    digest = hashlib.sha256(f"{seed}/{name}".encode()).digest()
    key = np.frombuffer(digest[:16], dtype="<u8")
    count = math.prod(shape)
    raw = np.random.Philox(key=key).random_raw((count + 1) // 2)
    words = np.atleast_1d(raw).astype("<u8").view("<u4")[:count]
    return ((words >> 8).astype(np.float32) * np.float32(2**-23) - np.float32(1)).reshape(shape)


def pose_logits(bins: int) -> Tensor:
    """Bins that decode to an angle of zero."""
    offset = torch.arange(bins, dtype=torch.float32) - (bins - 1) / 2
    return -offset.square() / POSE_CURVE


def _fill(seed: int, name: str, tensor: Tensor, scale: float, centre: float = 0.0) -> None:
    tensor.copy_(torch.from_numpy(uniform(seed, name, tensor.shape)) * scale + centre)


def _weight_scale(name: str, module: nn.Module, fan_in: int) -> float:
    """Half range of a uniform distribution with the variance of the layer's gain."""
    # Convolutions mostly read rectified input, whose mean square is half that of the layer before.
    gain = 1.0 if isinstance(module, nn.Linear) else math.sqrt(2.0)
    if name.rsplit(".", 1)[-1] in RESIDUAL_ENDS:
        gain *= RESIDUAL_GAIN
    return gain * math.sqrt(3.0 / fan_in)


def _fill_weighted(seed: int, name: str, module: nn.Module) -> None:
    """Convolutions and linear layers."""
    spectral = isinstance(module, SpectralConv2d)
    weight = module.get_parameter("weight_orig" if spectral else "weight")
    scale = _weight_scale(name, module, math.prod(weight.shape[1:]))
    bias_scale = 0.05
    for head, (gain, half_range) in HEADS.items():
        if name.endswith(head):
            scale, bias_scale = scale * gain, half_range
    _fill(seed, f"{name}.weight", weight, scale)
    if getattr(module, "bias", None) is not None:
        _fill(seed, f"{name}.bias", module.get_parameter("bias"), bias_scale)


def _fill_norm(seed: int, name: str, module: nn.Module) -> None:
    _fill(seed, f"{name}.weight", module.get_parameter("weight"), 0.1, 1.0)
    _fill(seed, f"{name}.bias", module.get_parameter("bias"), 0.05)
    if isinstance(module, (nn.BatchNorm2d, nn.BatchNorm3d)):
        _fill(seed, f"{name}.running_mean", module.get_buffer("running_mean"), 0.05)
        _fill(seed, f"{name}.running_var", module.get_buffer("running_var"), 0.2, 1.0)


def _fill_loose(seed: int, name: str, parameter: nn.Parameter) -> None:
    """Parameters that belong to no standard layer."""
    last = name.rsplit(".", 1)[-1]
    if last == "in_proj_weight":
        _fill(seed, name, parameter, math.sqrt(3.0 / parameter.shape[1]))
    elif last == "weight_v":
        _fill(seed, name, parameter, math.sqrt(3.0 / math.prod(parameter.shape[1:])))
    elif last in ("gamma", "beta", "bias", "in_proj_bias"):
        _fill(seed, name, parameter, 0.05)
    else:  # null embeddings, masked_spec_embed
        _fill(seed, name, parameter, 0.5)


def _centre_heads(network: nn.Module) -> None:
    """Heads with a meaning start from a frontal face at rest."""
    for name, module in network.named_modules():
        if not isinstance(module, nn.Linear):
            continue
        if name.endswith(POSE_HEADS):
            module.bias.add_(pose_logits(module.out_features))
        elif name.endswith("fc_scale"):
            module.bias.add_(1.0)
        elif name.endswith("final_layer"):
            bins = (module.out_features - 1 - 3 - 63) // 3
            module.weight.mul_(MOTION_GAIN)
            module.bias.mul_(0.1)
            module.bias[1 : 1 + 3 * bins].add_(pose_logits(bins).repeat(3))


@torch.no_grad()
def seed_parameters(network: nn.Module, seed: int) -> nn.Module:
    """Fills every parameter and statistic of `network` in place; returns it."""
    done: set[int] = set()
    for name, module in network.named_modules():
        weighted = isinstance(module, (nn.Conv1d, nn.Conv2d, nn.Conv3d, nn.Linear, SpectralConv2d))
        own = dict(module.named_parameters(recurse=False))
        if weighted:
            _fill_weighted(seed, name, module)
        elif "weight" in own and "bias" in own:
            _fill_norm(seed, name, module)
        else:
            for key, parameter in own.items():
                _fill_loose(seed, f"{name}.{key}", parameter)
            if "weight_g" in own:
                own["weight_g"].copy_(own["weight_v"].norm(dim=(0, 1), keepdim=True))
        if isinstance(module, SpectralConv2d):
            module.estimate_singular_vectors()
        done.update(id(parameter) for parameter in own.values())
    _centre_heads(network)
    missed = [name for name, p in network.named_parameters() if id(p) not in done]
    if missed:
        raise AssertionError(f"no rule for the parameters {missed}")
    return network
