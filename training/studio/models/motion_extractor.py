"""Motion extractor: a face crop to its motion vector and canonical keypoints."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from studio.voices.arkit import MOTION_DIMS

INPUT_PX = 256


class _Inverted(nn.Module):
    """Inverted residual (Sandler et al. 2018)."""

    def __init__(self, before: int, after: int, stride: int, expansion: int = 4) -> None:
        super().__init__()
        inner = before * expansion
        self.b = nn.Sequential(
            nn.Conv2d(before, inner, 1, bias=False),
            nn.BatchNorm2d(inner),
            nn.SiLU(),
            nn.Conv2d(inner, inner, 3, stride, 1, groups=inner, bias=False),
            nn.BatchNorm2d(inner),
            nn.SiLU(),
            nn.Conv2d(inner, after, 1, bias=False),
            nn.BatchNorm2d(after),
        )
        self.residual = stride == 1 and before == after

    def forward(self, x: Tensor) -> Tensor:
        y: Tensor = self.b(x)
        return x + y if self.residual else y


class MotionExtractor(nn.Module):
    """[B, 3, 256, 256] in 0..1 to motion [B, 59] and keypoints [B, K, 3]."""

    mean: Tensor
    std: Tensor

    def __init__(self, keypoints: int) -> None:
        super().__init__()
        self.keypoints = keypoints
        steps = ((24, 32, 2), (32, 32, 1), (32, 48, 2), (48, 48, 1), (48, 96, 2), (96, 96, 1),
                 (96, 96, 1), (96, 160, 2), (160, 160, 1), (160, 160, 1))  # fmt: skip
        self.n = nn.Sequential(
            nn.Conv2d(3, 24, 3, 2, 1), nn.SiLU(), *[_Inverted(*step) for step in steps]
        )
        self.h = nn.Conv2d(160, 48, 1)
        outputs = MOTION_DIMS + 3 * keypoints
        self.f = nn.Sequential(nn.Linear(48 * 64, 384), nn.SiLU(), nn.Linear(384, outputs))
        self.register_buffer("mean", torch.zeros(outputs))
        self.register_buffer("std", torch.ones(outputs))

    def forward(self, picture: Tensor) -> tuple[Tensor, Tensor]:
        h = self.f(self.h(self.n(picture * 2 - 1)).flatten(1)) * self.std + self.mean
        return h[:, :MOTION_DIMS], h[:, MOTION_DIMS:].view(-1, self.keypoints, 3)
