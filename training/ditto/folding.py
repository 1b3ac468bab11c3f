"""Rewrites of a network that change its form, not its function, before export.

Reparametrised weights become plain ones, batch norms merge into the convolution before them, and
packed attention projections are split, so that exporters see constants where there are constants.
"""

from __future__ import annotations

import copy
from typing import cast

import torch
from torch import Tensor, nn
from torch.nn.utils.fusion import fuse_conv_bn_eval

from ditto.blocks import ConvNorm2d, ConvNorm3d, ResBlock3d, SpectralConv2d
from ditto.hubert import WeightNormConv1d
from ditto.transformer import Attention, attend, split_heads


class SplitAttention(nn.Module):
    """`Attention` with one linear layer each for queries, keys and values."""

    def __init__(self, packed: Attention) -> None:
        super().__init__()
        self.heads = packed.heads
        channels = packed.out_proj.in_features
        weights = packed.in_proj_weight.chunk(3)
        biases = packed.in_proj_bias.chunk(3)
        self.projections = nn.ModuleList()
        for weight, bias in zip(weights, biases, strict=True):
            layer = nn.Linear(channels, channels)
            layer.weight.copy_(weight)
            layer.bias.copy_(bias)
            self.projections.append(layer)
        self.out_proj = packed.out_proj

    def forward(self, query: Tensor, key: Tensor, value: Tensor) -> Tensor:
        q, k, v = (
            split_heads(layer(x), self.heads)
            for layer, x in zip(self.projections, (query, key, value), strict=True)
        )
        return cast(Tensor, self.out_proj(attend(q, k, v)))


class PlainPositionConv1d(nn.Module):
    """`WeightNormConv1d` with its weight worked out."""

    def __init__(self, source: WeightNormConv1d) -> None:
        super().__init__()
        channels, inputs, kernel = source.weight_v.shape
        self.conv = nn.Conv1d(
            channels, channels, kernel, padding=kernel // 2, groups=channels // inputs
        )
        self.conv.weight.copy_(source.weight())
        self.conv.bias = source.bias

    def forward(self, x: Tensor) -> Tensor:
        return cast(Tensor, self.conv(x))[:, :, :-1]


def _plain_convolution(source: SpectralConv2d) -> nn.Conv2d:
    outputs, inputs, kernel, _ = source.weight_orig.shape
    conv = nn.Conv2d(inputs, outputs, kernel, padding=source.padding, bias=source.bias is not None)
    conv.weight.copy_(source.weight())
    if source.bias is not None:
        conv.bias = source.bias
    return conv


def _merge_norms(module: nn.Module) -> None:
    if isinstance(module, (ConvNorm2d, ConvNorm3d)):
        module.conv = fuse_conv_bn_eval(module.conv, module.norm)
        setattr(module, "norm", nn.Identity())  # noqa: B010
    elif isinstance(module, ResBlock3d):
        module.conv1 = fuse_conv_bn_eval(module.conv1, module.norm2)
        setattr(module, "norm2", nn.Identity())  # noqa: B010


@torch.no_grad()
def folded(network: nn.Module) -> nn.Module:
    """A copy of `network`, in inference mode, with the rewrites applied."""
    network = copy.deepcopy(network).eval()
    for module in list(network.modules()):
        _merge_norms(module)
        for name, child in list(module.named_children()):
            if isinstance(child, SpectralConv2d):
                setattr(module, name, _plain_convolution(child))
            elif isinstance(child, WeightNormConv1d):
                setattr(module, name, PlainPositionConv1d(child))
            elif isinstance(child, Attention):
                setattr(module, name, SplitAttention(child))
    return network.eval().requires_grad_(False)
