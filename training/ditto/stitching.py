"""Stitching MLP: keeps the driven shoulders and neck where the source has them."""

from __future__ import annotations

from itertools import pairwise

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from ditto.config import DittoConfig


class StitchingNetwork(nn.Module):
    """Source and driving keypoints [B, 21, 3] -> corrected driving keypoints [B, 21, 3].

    The MLP (126 -> 65) yields an offset per keypoint and one shared (x, y) shift.
    """

    HIDDEN = (128, 128, 64)

    def __init__(self, config: DittoConfig) -> None:
        super().__init__()
        points = 3 * config.keypoints
        self.points = config.keypoints
        sizes = (2 * points, *self.HIDDEN)
        layers: list[nn.Module] = []
        for inputs, outputs in pairwise(sizes):
            layers += [nn.Linear(inputs, outputs), nn.ReLU()]
        self.mlp = nn.Sequential(*layers, nn.Linear(sizes[-1], points + 2))

    def forward(self, kp_source: Tensor, kp_driving: Tensor) -> Tensor:
        delta: Tensor = self.mlp(torch.cat([kp_source.flatten(1), kp_driving.flatten(1)], dim=1))
        points = 3 * self.points
        offset = torch.unflatten(delta[:, :points], 1, (self.points, 3))
        shift = F.pad(delta[:, points:], (0, 1)).unsqueeze(1)
        return kp_driving + offset + shift
