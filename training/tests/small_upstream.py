"""Upstream's modules at test size: its constructors take sizes, if not a width multiplier."""

from __future__ import annotations

import importlib
from types import ModuleType
from typing import Any

from torch import nn

from ditto.config import DittoConfig


def _warp(modules: ModuleType, config: DittoConfig) -> nn.Module:
    dense = importlib.import_module(f"{modules.__name__}.dense_motion")
    network: Any = modules.WarpingNetwork(
        block_expansion=config.block_expansion,
        max_features=config.volume_channels * config.volume_depth,
        reshape_channel=config.volume_channels,
    )
    network.dense_motion_network = dense.DenseMotionNetwork(
        block_expansion=config.hourglass_expansion,
        num_blocks=config.hourglass_blocks,
        max_features=config.hourglass_max,
        num_kp=config.keypoints,
        feature_channel=config.volume_channels,
        reshape_depth=config.volume_depth,
        compress=config.compress,
    )
    return network


def _motion_extractor(modules: ModuleType, config: DittoConfig) -> nn.Module:
    backbone = importlib.import_module(f"{modules.__name__}.convnextv2")
    network: Any = modules.MotionExtractor()
    network.detector = backbone.ConvNeXtV2(dims=list(config.convnext_dims), num_kp=config.keypoints)
    return network


def _motion_generator(modules: ModuleType, config: DittoConfig) -> nn.Module:
    inner = importlib.import_module(f"{modules.__name__}.lmdm_modules.model")
    network: Any = modules.LMDM(audio_feat_dim=config.condition_dims, device="cpu")
    network.model = inner.MotionDecoder(
        nfeats=config.motion_dims,
        seq_len=config.sequence_frames,
        latent_dim=config.latent_dims,
        ff_size=2 * config.latent_dims,
        num_layers=config.lmdm_layers,
        num_heads=config.lmdm_heads,
        cond_feature_dim=config.condition_dims,
    )
    return network


def build_small(modules: ModuleType, role: str, config: DittoConfig) -> nn.Module:
    """Upstream's network of a role, at the sizes of `config`."""
    expansion, depth = config.block_expansion, config.volume_depth
    if role == "appearance_extractor":
        network = modules.AppearanceFeatureExtractor(
            block_expansion=expansion,
            max_features=config.volume_channels * depth,
            reshape_channel=config.volume_channels,
        )
    elif role == "motion_extractor":
        network = _motion_extractor(modules, config)
    elif role == "stitch":
        network = modules.StitchingNetwork()
    elif role == "warp":
        network = _warp(modules, config)
    elif role == "decoder":
        network = modules.SPADEDecoder(
            block_expansion=expansion, max_features=8 * expansion, out_channels=expansion
        )
    else:
        network = _motion_generator(modules, config)
    return network.eval()
