"""Parts of the picture networks."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn

LEAK = 0.1


class Film(nn.Module):
    """Feature-wise modulation (Perez et al. 2018) by a code; starts as the identity."""

    def __init__(self, channels: int, code: int) -> None:
        super().__init__()
        self.l = nn.Linear(code, 2 * channels)
        nn.init.zeros_(self.l.weight)
        nn.init.zeros_(self.l.bias)

    def forward(self, x: Tensor, code: Tensor) -> Tensor:
        gain, shift = self.l(code)[:, :, None, None].chunk(2, 1)
        return x * (1 + gain) + shift


class Residual(nn.Module):
    """Two 3 x 3 convolutions, modulated in between when there is a code."""

    def __init__(self, channels: int, code: int = 0) -> None:
        super().__init__()
        self.a = nn.Conv2d(channels, channels, 3, 1, 1)
        self.b = nn.Conv2d(channels, channels, 3, 1, 1)
        self.f = Film(channels, code) if code else None
        nn.init.normal_(self.b.weight, 0, 0.02)
        nn.init.zeros_(self.b.bias)

    def forward(self, x: Tensor, code: Tensor | None = None) -> Tensor:
        h = self.a(F.leaky_relu(x, LEAK))
        if self.f is not None:
            assert code is not None
            h = self.f(h, code)
        out: Tensor = x + self.b(F.leaky_relu(h, LEAK))
        return out


def pixel_grid(size: int) -> Tensor:
    """Centres of the pixels of a square in -1..1, x then y [2, size, size]."""
    line = (torch.arange(size) + 0.5) / (size / 2) - 1
    y, x = torch.meshgrid(line, line, indexing="ij")
    return torch.stack([x, y])


def warp_by(features: Tensor, flow: Tensor) -> Tensor:
    """Samples `features` at `flow` [B, 2, H, W]."""
    return F.grid_sample(
        features,
        flow.permute(0, 2, 3, 1).to(features.dtype),
        mode="bilinear",
        padding_mode="border",
        align_corners=False,
    )
