"""Our networks against upstream's modules, stage by stage, on the same seeded weights.

The sizes are the released ones: upstream's modules have no width multiplier.
"""

from __future__ import annotations

from types import ModuleType

import numpy as np
import pytest
import torch
from parity_log import record
from torch import Tensor, nn

from ditto.config import DittoConfig
from ditto.hubert import Hubert
from ditto.networks import build_network
from ditto.seeded import seed_parameters, uniform
from ditto.warping import DenseMotionNetwork

TOLERANCE = 1e-4  # max abs error, f32
SEED = 7
CONFIG = DittoConfig()


def values(name: str, shape: tuple[int, ...], scale: float = 1.0) -> Tensor:
    return torch.from_numpy(uniform(SEED, f"input/{name}", shape)) * scale


def keypoints(name: str, batch: int) -> Tensor:
    return values(name, (batch, 21, 3), 0.6)


@torch.no_grad()
def compare(stage: str, ours: nn.Module, theirs: nn.Module, inputs: tuple[Tensor, ...]) -> None:
    # strict=True is the proof that parameter names and shapes are the public ones.
    theirs.load_state_dict(ours.state_dict(), strict=True)
    ours.load_state_dict(theirs.state_dict(), strict=True)
    check(stage, ours(*inputs), theirs.eval()(*inputs))


def check(stage: str, found: Tensor | tuple[Tensor, ...], wanted: object) -> None:
    found = found if isinstance(found, tuple) else (found,)
    wanted = wanted if isinstance(wanted, tuple) else (wanted,)
    assert len(found) == len(wanted)
    for index, (a, b) in enumerate(zip(found, wanted, strict=True)):
        assert a.shape == b.shape
        assert torch.isfinite(b).all()
        error = (a - b).abs().max().item()
        record(f"{stage}[{index}]" if len(found) > 1 else stage, error, b.abs().max().item())
        assert error <= TOLERANCE, f"{stage} output {index}: max abs error {error}"


def ours(role: str) -> nn.Module:
    return seed_parameters(build_network(role, CONFIG), SEED)


def test_appearance_extractor(upstream: ModuleType) -> None:
    image = values("image", (1, 3, 256, 256), 0.5) + 0.5
    theirs = upstream.AppearanceFeatureExtractor()
    compare("appearance_extractor", ours("appearance_extractor"), theirs, (image,))


def test_motion_extractor(upstream: ModuleType) -> None:
    image = values("image", (1, 3, 256, 256), 0.5) + 0.5
    compare("motion_extractor", ours("motion_extractor"), upstream.MotionExtractor(), (image,))


def test_stitch(upstream: ModuleType) -> None:
    inputs = (keypoints("source", 3), keypoints("driving", 3))
    compare("stitch", ours("stitch"), upstream.StitchingNetwork(), inputs)


def test_warp(upstream: ModuleType) -> None:
    volume = values("volume", (1, 32, 16, 64, 64)).expand(2, -1, -1, -1, -1).contiguous()
    inputs = (volume, keypoints("source", 2), keypoints("driving", 2))
    compare("warp", ours("warp"), upstream.WarpingNetwork(), inputs)


@torch.no_grad()
def test_dense_motion_core(upstream: ModuleType) -> None:
    network = ours("dense_motion_core").get_submodule("dense_motion_network")
    assert isinstance(network, DenseMotionNetwork)
    theirs = upstream.WarpingNetwork().dense_motion_network.eval()
    theirs.load_state_dict(network.state_dict(), strict=True)
    volume = values("volume", (1, 32, 16, 64, 64))
    source, driving = keypoints("source", 1), keypoints("driving", 1)
    expected = theirs(volume, driving, source)
    x, motions = network.core_input(volume, source, driving)
    mask, occlusion = network.core(x)
    deformation = (motions * mask.unsqueeze(-1)).sum(dim=1)
    check("dense_motion_core.mask", mask, expected["mask"])
    check("dense_motion_core.occlusion", occlusion, expected["occlusion_map"])
    check("dense_motion_core.deformation", deformation, expected["deformation"])


def test_decoder(upstream: ModuleType) -> None:
    feature = values("feature", (1, 256, 64, 64))
    compare("decoder", ours("decoder"), upstream.SPADEDecoder(), (feature,))


@torch.no_grad()
def test_motion_generator(upstream: ModuleType) -> None:
    network = ours("motion_generator")
    theirs = upstream.LMDM(audio_feat_dim=1103, device="cpu").eval()
    # The public file holds the inner model's state dict.
    theirs.model.load_state_dict(network.get_submodule("model").state_dict(), strict=True)
    for step in (999, 499, 19):  # 19 is the lowest whose noise a 50-step sampler reads
        inputs = (
            values(f"x{step}", (1, 80, 265)),
            values("previous", (1, 265)),
            values("condition", (1, 80, 1103)),
            torch.tensor([step]),
        )
        found, wanted = network(*inputs), theirs(*inputs)
        check(f"motion_generator.x_start@{step}", found[1], wanted[1])
        check(f"motion_generator.pred_noise@{step}", found[0], wanted[0])


@torch.no_grad()
def test_audio_encoder_against_transformers() -> None:
    """Upstream has HuBERT as a graph only; its modules are those of the transformers package."""
    transformers = pytest.importorskip("transformers")
    network = seed_parameters(Hubert(CONFIG).eval(), SEED)
    settings = transformers.HubertConfig(
        hidden_size=CONFIG.hubert_dims,
        num_hidden_layers=CONFIG.hubert_layers,
        num_attention_heads=CONFIG.hubert_heads,
        intermediate_size=4 * CONFIG.hubert_dims,
        feat_extract_norm="layer",
        conv_bias=True,
        do_stable_layer_norm=True,
        attn_implementation="eager",
    )
    theirs = transformers.HubertModel(settings).eval()
    state = network.state_dict()
    # Newer PyTorch spells weight norm as a parametrization; checkpoints have the older names.
    conv = "encoder.pos_conv_embed.conv"
    renamed = {"weight_g": "original0", "weight_v": "original1"}
    target = theirs.state_dict()
    for old, new in renamed.items():
        if f"{conv}.parametrizations.weight.{new}" in target:
            state[f"{conv}.parametrizations.weight.{new}"] = state.pop(f"{conv}.{old}")
    theirs.load_state_dict(state, strict=True)
    audio = values("audio", (1, 6480), 0.1)
    check("audio_encoder", network(audio), theirs(audio).last_hidden_state)


def test_values_are_reproducible() -> None:
    first = values("x", (5,))
    expected = first.numpy()
    assert np.array_equal(values("x", (5,)), expected)
    assert not np.array_equal(values("y", (5,)), expected)
