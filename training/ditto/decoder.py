"""SPADE decoder: warped feature map -> picture."""

from __future__ import annotations

from typing import cast

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from ditto.blocks import SpectralConv2d
from ditto.config import DittoConfig

LEAK = 0.2


class Spade(nn.Module):
    """Instance norm modulated by the feature map, resized to the input (nearest)."""

    def __init__(self, channels: int, labels: int, hidden: int) -> None:
        super().__init__()
        self.mlp_shared = nn.Sequential(nn.Conv2d(labels, hidden, 3, padding=1), nn.ReLU())
        self.mlp_gamma = nn.Conv2d(hidden, channels, 3, padding=1)
        self.mlp_beta = nn.Conv2d(hidden, channels, 3, padding=1)

    def forward(self, x: Tensor, label: Tensor) -> Tensor:
        hidden = self.mlp_shared(label)
        normalized = F.instance_norm(x)
        gamma: Tensor = self.mlp_gamma(hidden)
        beta: Tensor = self.mlp_beta(hidden)
        return normalized * (1 + gamma) + beta


class SpadeResnetBlock(nn.Module):
    """Two modulated spectral convolutions; a 1x1 shortcut when the width changes."""

    def __init__(self, inputs: int, outputs: int, labels: int, hidden: int) -> None:
        super().__init__()
        middle = min(inputs, outputs)
        self.conv_0 = SpectralConv2d(inputs, middle, 3)
        self.conv_1 = SpectralConv2d(middle, outputs, 3)
        self.norm_0 = Spade(inputs, labels, hidden)
        self.norm_1 = Spade(middle, labels, hidden)
        self.learned_shortcut = inputs != outputs
        if self.learned_shortcut:
            self.conv_s = SpectralConv2d(inputs, outputs, 1, bias=False)
            self.norm_s = Spade(inputs, labels, hidden)

    def forward(self, x: Tensor, label: Tensor) -> Tensor:
        y = self.conv_0(F.leaky_relu(self.norm_0(x, label), LEAK))
        y = self.conv_1(F.leaky_relu(self.norm_1(y, label), LEAK))
        shortcut = self.conv_s(self.norm_s(x, label)) if self.learned_shortcut else x
        return cast(Tensor, shortcut + y)


class SpadeDecoder(nn.Module):
    """Feature map [B, 256, H, W] -> RGB [B, 3, 8H, 8W] in 0..1."""

    MIDDLE_BLOCKS = 6

    def __init__(self, config: DittoConfig) -> None:
        super().__init__()
        labels = config.feature_channels
        hidden = config.spade_hidden
        self.fc = nn.Conv2d(labels, 2 * labels, 3, padding=1)
        for index in range(self.MIDDLE_BLOCKS):
            block = SpadeResnetBlock(2 * labels, 2 * labels, labels, hidden)
            self.add_module(f"G_middle_{index}", block)
        self.up_0 = SpadeResnetBlock(2 * labels, labels, labels, hidden)
        self.up_1 = SpadeResnetBlock(labels, config.block_expansion, labels, hidden)
        self.conv_img = nn.Sequential(
            nn.Conv2d(config.block_expansion, 12, 3, padding=1), nn.PixelShuffle(2)
        )

    def forward(self, feature: Tensor) -> Tensor:
        x = self.fc(feature)
        label = feature
        for index in range(self.MIDDLE_BLOCKS):
            x = self.get_submodule(f"G_middle_{index}")(x, label)
        for block in (self.up_0, self.up_1):
            x = F.interpolate(x, scale_factor=2.0)
            label = F.interpolate(label, scale_factor=2.0)
            x = block(x, label)
        return torch.sigmoid(self.conv_img(F.leaky_relu(x, LEAK)))
