"""Tensor names and shapes of the graphs by role, with the names of the engine's contracts."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from ditto.config import DittoConfig

Shape = tuple[int, ...]


@dataclass(frozen=True)
class Signature:
    """Tensor names with the shapes for a batch of one."""

    inputs: Mapping[str, Shape]
    outputs: Mapping[str, Shape]
    batched: bool  # axis 0 of every tensor may grow together


def _audio_encoder(config: DittoConfig) -> Signature:
    rows = config.audio_samples // 320
    return Signature(
        {"input_values": (1, config.audio_samples)},
        {"encoding_out": (1, rows, config.hubert_dims)},
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


SIGNATURES: dict[str, Callable[[DittoConfig], Signature]] = {
    "audio_encoder": _audio_encoder,
    "motion_generator": _motion_generator,
    "stitch": _stitch,
    "appearance_extractor": _appearance_extractor,
    "motion_extractor": _motion_extractor,
    "warp": _warp,
    "dense_motion_core": _dense_motion_core,
    "decoder": _decoder,
}
