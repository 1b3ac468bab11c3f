"""Blocks shared by the renderer networks."""

from __future__ import annotations

from itertools import pairwise
from typing import cast

import torch
from torch import Tensor, nn
from torch.nn import functional as F


class ConvNorm2d(nn.Module):
    """3x3 convolution and batch norm."""

    def __init__(self, inputs: int, outputs: int) -> None:
        super().__init__()
        self.conv = nn.Conv2d(inputs, outputs, 3, padding=1)
        self.norm = nn.BatchNorm2d(outputs)

    def forward(self, x: Tensor) -> Tensor:
        return cast(Tensor, self.norm(self.conv(x)))


class SameBlock2d(ConvNorm2d):
    """Convolution, norm and (leaky) ReLU at one resolution."""

    def __init__(self, inputs: int, outputs: int, negative_slope: float = 0.0) -> None:
        super().__init__(inputs, outputs)
        self.negative_slope = negative_slope

    def forward(self, x: Tensor) -> Tensor:
        x = super().forward(x)
        return F.leaky_relu(x, self.negative_slope) if self.negative_slope else F.relu(x)


class DownBlock2d(ConvNorm2d):
    """Convolution, norm, ReLU, then 2x2 mean pooling."""

    def forward(self, x: Tensor) -> Tensor:
        return F.avg_pool2d(F.relu(super().forward(x)), 2)


class ConvNorm3d(nn.Module):
    """3x3x3 convolution, batch norm and ReLU."""

    def __init__(self, inputs: int, outputs: int) -> None:
        super().__init__()
        self.conv = nn.Conv3d(inputs, outputs, 3, padding=1)
        self.norm = nn.BatchNorm3d(outputs)

    def forward(self, x: Tensor) -> Tensor:
        return F.relu(self.norm(self.conv(x)))


class DownBlock3d(ConvNorm3d):
    """Halves height and width, keeps depth."""

    def forward(self, x: Tensor) -> Tensor:
        return F.avg_pool3d(super().forward(x), (1, 2, 2))


class UpBlock3d(ConvNorm3d):
    """Doubles height and width, keeps depth."""

    def forward(self, x: Tensor) -> Tensor:
        return super().forward(F.interpolate(x, scale_factor=(1.0, 2.0, 2.0)))


class ResBlock3d(nn.Module):
    """Pre-activation residual block on a feature volume."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.conv1 = nn.Conv3d(channels, channels, 3, padding=1)
        self.conv2 = nn.Conv3d(channels, channels, 3, padding=1)
        self.norm1 = nn.BatchNorm3d(channels)
        self.norm2 = nn.BatchNorm3d(channels)

    def forward(self, x: Tensor) -> Tensor:
        y = self.conv1(F.relu(self.norm1(x)))
        return x + cast(Tensor, self.conv2(F.relu(self.norm2(y))))


class _HourglassEncoder(nn.Module):
    def __init__(self, widths: list[int]) -> None:
        super().__init__()
        self.down_blocks = nn.ModuleList(
            DownBlock3d(inputs, outputs) for inputs, outputs in pairwise(widths)
        )

    def forward(self, x: Tensor) -> list[Tensor]:
        levels = [x]
        for block in self.down_blocks:
            levels.append(block(levels[-1]))
        return levels


class _HourglassDecoder(nn.Module):
    def __init__(self, widths: list[int], expansion: int) -> None:
        super().__init__()
        inputs = widths[-1]
        blocks = []
        for skip in reversed([expansion, *widths[1:-1]]):
            blocks.append(UpBlock3d(inputs, skip))
            inputs = 2 * skip
        self.up_blocks = nn.ModuleList(blocks)
        self.out_filters = expansion + widths[0]
        self.conv = nn.Conv3d(self.out_filters, self.out_filters, 3, padding=1)
        self.norm = nn.BatchNorm3d(self.out_filters)

    def forward(self, levels: list[Tensor]) -> Tensor:
        x = levels[-1]
        for block, skip in zip(self.up_blocks, reversed(levels[:-1]), strict=True):
            x = torch.cat([block(x), skip], dim=1)
        return F.relu(self.norm(self.conv(x)))


class Hourglass(nn.Module):
    """U-shaped 3-D network that returns `expansion + inputs` channels at input resolution."""

    def __init__(self, expansion: int, inputs: int, blocks: int, max_channels: int) -> None:
        super().__init__()
        widths = [inputs] + [min(max_channels, expansion << (i + 1)) for i in range(blocks)]
        self.encoder = _HourglassEncoder(widths)
        self.decoder = _HourglassDecoder(widths, min(max_channels, expansion))
        self.out_filters = self.decoder.out_filters

    def forward(self, x: Tensor) -> Tensor:
        return cast(Tensor, self.decoder(self.encoder(x)))


class SpectralConv2d(nn.Module):
    """Convolution whose weight is divided by its largest singular value.

    The stored vectors `weight_u` and `weight_v` are that value's singular vectors (Miyato et al.,
    arXiv 1802.05957); inference only evaluates sigma = u^T W v.
    """

    weight_u: Tensor
    weight_v: Tensor

    def __init__(self, inputs: int, outputs: int, kernel: int, bias: bool = True) -> None:
        super().__init__()
        self.padding = kernel // 2
        self.weight_orig = nn.Parameter(torch.empty(outputs, inputs, kernel, kernel))
        nn.init.kaiming_uniform_(self.weight_orig)
        self.bias = nn.Parameter(torch.zeros(outputs)) if bias else None
        self.register_buffer("weight_u", torch.zeros(outputs))
        self.register_buffer("weight_v", torch.zeros(inputs * kernel * kernel))
        self.estimate_singular_vectors()

    @torch.no_grad()
    def estimate_singular_vectors(self, steps: int = 20) -> None:
        """Power iteration from a fixed start."""
        matrix = self.weight_orig.flatten(1)
        v = torch.ones(matrix.shape[1])
        u = matrix @ v
        for _ in range(steps):
            u = F.normalize(matrix @ v, dim=0)
            v = F.normalize(matrix.t() @ u, dim=0)
        self.weight_u.copy_(u)
        self.weight_v.copy_(v)

    def weight(self) -> Tensor:
        """The normalised weight."""
        sigma = torch.dot(self.weight_u, torch.mv(self.weight_orig.flatten(1), self.weight_v))
        return self.weight_orig / sigma

    def forward(self, x: Tensor) -> Tensor:
        return F.conv2d(x, self.weight(), self.bias, padding=self.padding)
