"""The networks by graph role."""

from __future__ import annotations

from collections.abc import Callable

from torch import nn

from ditto.config import DittoConfig
from ditto.decoder import SpadeDecoder
from ditto.extractors import AppearanceExtractor, MotionExtractor
from ditto.hubert import Hubert
from ditto.lmdm import Lmdm
from ditto.stitching import StitchingNetwork
from ditto.warping import WarpingNetwork

# dense_motion_core is a part of the warping network; it has the same parameters.
NETWORKS: dict[str, Callable[[DittoConfig], nn.Module]] = {
    "audio_encoder": Hubert,
    "motion_generator": Lmdm,
    "stitch": StitchingNetwork,
    "appearance_extractor": AppearanceExtractor,
    "motion_extractor": MotionExtractor,
    "warp": WarpingNetwork,
    "dense_motion_core": WarpingNetwork,
    "decoder": SpadeDecoder,
}


def build_network(role: str, config: DittoConfig) -> nn.Module:
    """The role's network in inference mode; parameters are whatever PyTorch initialised."""
    return NETWORKS[role](config).eval().requires_grad_(False)
