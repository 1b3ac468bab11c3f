"""Networks that read the source picture: appearance volume and motion parameters."""

from __future__ import annotations

from typing import cast

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from ditto.blocks import DownBlock2d, ResBlock3d, SameBlock2d
from ditto.config import DittoConfig


class AppearanceExtractor(nn.Module):
    """Picture [B, 3, S, S] in 0..1 -> feature volume [B, C, 16, S/4, S/4]."""

    def __init__(self, config: DittoConfig) -> None:
        super().__init__()
        base = config.block_expansion
        self.volume_channels = config.volume_channels
        self.depth = config.volume_depth
        self.first = SameBlock2d(3, base)
        self.down_blocks = nn.ModuleList(
            [DownBlock2d(base, 2 * base), DownBlock2d(2 * base, 4 * base)]
        )
        self.second = nn.Conv2d(4 * base, self.volume_channels * self.depth, 1)
        self.resblocks_3d = nn.Sequential()
        for index in range(6):
            self.resblocks_3d.add_module(f"3dr{index}", ResBlock3d(self.volume_channels))

    def forward(self, image: Tensor) -> Tensor:
        x = self.first(image)
        for block in self.down_blocks:
            x = block(x)
        x = self.second(x)
        volume = torch.unflatten(x, 1, (self.volume_channels, self.depth))
        return cast(Tensor, self.resblocks_3d(volume))


class ChannelNorm(nn.Module):
    """Layer norm over the channels of [B, H, W, C], or of [B, C, H, W] when `first`."""

    def __init__(self, channels: int, first: bool = False) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(channels))
        self.bias = nn.Parameter(torch.zeros(channels))
        self.first = first

    def forward(self, x: Tensor) -> Tensor:
        if self.first:
            x = x.movedim(1, -1)
        x = F.layer_norm(x, self.weight.shape, self.weight, self.bias, 1e-6)
        return x.movedim(-1, 1) if self.first else x


class GlobalResponseNorm(nn.Module):
    """GRN of ConvNeXt V2 (arXiv 2301.00808), channels last."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.gamma = nn.Parameter(torch.zeros(1, 1, 1, channels))
        self.beta = nn.Parameter(torch.zeros(1, 1, 1, channels))

    def forward(self, x: Tensor) -> Tensor:
        energy = x.square().sum(dim=(1, 2), keepdim=True).sqrt()
        response = energy / (energy.mean(dim=-1, keepdim=True) + 1e-6)
        return self.gamma * (x * response) + self.beta + x


class ConvNextBlock(nn.Module):
    """Depth-wise 7x7, then a pointwise MLP with GRN, as a residual."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.dwconv = nn.Conv2d(channels, channels, 7, padding=3, groups=channels)
        self.norm = ChannelNorm(channels)
        self.pwconv1 = nn.Linear(channels, 4 * channels)
        self.grn = GlobalResponseNorm(4 * channels)
        self.pwconv2 = nn.Linear(4 * channels, channels)

    def forward(self, x: Tensor) -> Tensor:
        y = self.norm(self.dwconv(x).movedim(1, -1))
        y = self.pwconv2(self.grn(F.gelu(self.pwconv1(y))))
        return x + cast(Tensor, y).movedim(-1, 1)


class MotionBackbone(nn.Module):
    """ConvNeXt V2 tiny with one linear head per motion parameter."""

    DEPTHS = (3, 3, 9, 3)
    HEADS = ("pitch", "yaw", "roll", "t", "exp", "scale", "kp")

    def __init__(self, config: DittoConfig) -> None:
        super().__init__()
        dims = config.convnext_dims
        stem = nn.Sequential(nn.Conv2d(3, dims[0], 4, stride=4), ChannelNorm(dims[0], first=True))
        downs = [
            nn.Sequential(ChannelNorm(dims[i], first=True), nn.Conv2d(dims[i], dims[i + 1], 2, 2))
            for i in range(3)
        ]
        self.downsample_layers = nn.ModuleList([stem, *downs])
        self.stages = nn.ModuleList(
            nn.Sequential(*(ConvNextBlock(dim) for _ in range(depth)))
            for dim, depth in zip(dims, self.DEPTHS, strict=True)
        )
        self.norm = nn.LayerNorm(dims[-1], eps=1e-6)
        points = 3 * config.keypoints
        self.fc_kp = nn.Linear(dims[-1], points)
        self.fc_scale = nn.Linear(dims[-1], 1)
        self.fc_pitch = nn.Linear(dims[-1], config.pose_bins)
        self.fc_yaw = nn.Linear(dims[-1], config.pose_bins)
        self.fc_roll = nn.Linear(dims[-1], config.pose_bins)
        self.fc_t = nn.Linear(dims[-1], 3)
        self.fc_exp = nn.Linear(dims[-1], points)

    def forward(self, x: Tensor) -> tuple[Tensor, ...]:
        for downsample, stage in zip(self.downsample_layers, self.stages, strict=True):
            x = stage(downsample(x))
        pooled = self.norm(x.mean(dim=(2, 3)))
        return tuple(getattr(self, f"fc_{head}")(pooled) for head in self.HEADS)


class MotionExtractor(nn.Module):
    """Picture [B, 3, S, S] in 0..1 -> pitch, yaw, roll [B, 66], t [B, 3], exp [B, 63],
    scale [B, 1], kp [B, 63]."""

    def __init__(self, config: DittoConfig) -> None:
        super().__init__()
        self.detector = MotionBackbone(config)

    def forward(self, image: Tensor) -> tuple[Tensor, ...]:
        return cast(tuple[Tensor, ...], self.detector(image))
