"""The networks by graph role, with the tensor names of the engine's contracts."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import torch
from torch import nn

from ditto.config import DittoConfig
from ditto.decoder import SpadeDecoder
from ditto.extractors import AppearanceExtractor, MotionExtractor
from ditto.hubert import Hubert
from ditto.lmdm import Lmdm
from ditto.stitching import StitchingNetwork
from ditto.warping import WarpingNetwork

Shape = tuple[int, ...]


@dataclass(frozen=True)
class Signature:
    """Tensor names with the shapes for a batch of one."""

    inputs: Mapping[str, Shape]
    outputs: Mapping[str, Shape]
    batched: bool  # axis 0 of every tensor may grow together


@dataclass(frozen=True)
class Role:
    """One network of the family and what it exchanges with the engine."""

    build: Callable[[DittoConfig], nn.Module]
    signature: Callable[[DittoConfig], Signature]


def _audio_encoder(config: DittoConfig) -> Signature:
    rows = config.audio_samples // 320
    return Signature(
        {"input_values": (1, config.audio_samples)},
        {"encoding_out": (rows, config.hubert_dims)},
        batched=False,
    )


def _motion_generator(config: DittoConfig) -> Signature:
    window = (1, config.sequence_frames, config.motion_dims)
    return Signature(
        {
            "x": window,
            "cond_frame": (1, config.motion_dims),
            "cond": (1, config.sequence_frames, config.condition_dims),
            "time_cond": (1,),
        },
        {"pred_noise": window, "x_start": window},
        batched=False,
    )


def _keypoints(config: DittoConfig) -> Shape:
    return (1, config.keypoints, 3)


def _volume(config: DittoConfig) -> Shape:
    size = config.volume_size
    return (1, config.volume_channels, config.volume_depth, size, size)


def _feature(config: DittoConfig) -> Shape:
    return (1, config.feature_channels, config.volume_size, config.volume_size)


def _image(config: DittoConfig) -> Shape:
    return (1, 3, config.image_size, config.image_size)


def _stitch(config: DittoConfig) -> Signature:
    points = _keypoints(config)
    return Signature(
        {"kp_source": points, "kp_driving": points}, {"kp_stitched": points}, batched=True
    )


def _appearance_extractor(config: DittoConfig) -> Signature:
    return Signature({"image": _image(config)}, {"f_s": _volume(config)}, batched=False)


def _motion_extractor(config: DittoConfig) -> Signature:
    points, bins = (1, 3 * config.keypoints), (1, config.pose_bins)
    outputs = {
        "pitch": bins,
        "yaw": bins,
        "roll": bins,
        "t": (1, 3),
        "exp": points,
        "scale": (1, 1),
        "kp": points,
    }
    return Signature({"image": _image(config)}, outputs, batched=False)


def _warp(config: DittoConfig) -> Signature:
    points = _keypoints(config)
    return Signature(
        {"f_s": _volume(config), "kp_source": points, "kp_driving": points},
        {"feature": _feature(config)},
        batched=True,
    )


def _dense_motion_core(config: DittoConfig) -> Signature:
    size = config.volume_size
    volume = (config.volume_depth, size, size)
    return Signature(
        {"motion_input": (1, config.core_channels, *volume)},
        {"mask": (1, config.keypoints + 1, *volume), "occlusion": (1, 1, size, size)},
        batched=True,
    )


def _decoder(config: DittoConfig) -> Signature:
    side = 2 * config.image_size
    return Signature({"feature": _feature(config)}, {"image": (1, 3, side, side)}, batched=True)


# dense_motion_core is a part of the warping network; it has the same parameters.
ROLES: dict[str, Role] = {
    "audio_encoder": Role(Hubert, _audio_encoder),
    "motion_generator": Role(Lmdm, _motion_generator),
    "stitch": Role(StitchingNetwork, _stitch),
    "appearance_extractor": Role(AppearanceExtractor, _appearance_extractor),
    "motion_extractor": Role(MotionExtractor, _motion_extractor),
    "warp": Role(WarpingNetwork, _warp),
    "dense_motion_core": Role(WarpingNetwork, _dense_motion_core),
    "decoder": Role(SpadeDecoder, _decoder),
}


def build_network(role: str, config: DittoConfig) -> nn.Module:
    """The role's network in inference mode; parameters are whatever PyTorch initialised."""
    network = ROLES[role].build(config).eval()
    return network.requires_grad_(False)


def parameter_names(network: nn.Module) -> dict[str, torch.Size]:
    """Names and shapes a state dict must have for this network."""
    return {name: value.shape for name, value in network.state_dict().items()}
