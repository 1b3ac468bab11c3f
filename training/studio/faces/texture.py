"""Procedural skin detail: tileable noise at several sizes, freckles, and pores as slopes."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor

BROAD, TINT, MIDDLE, FINE, FRECKLES, SLOPE_X, SLOPE_Y = range(7)
_HEIGHT, _WIDTH, _SEED = 1024, 2048, 3


def skin_texture() -> Tensor:
    """Channels [7, 1024, 2048] in the order of the constants above."""
    dice = torch.Generator().manual_seed(_SEED)

    def noise(rows: int, columns: int) -> Tensor:
        """Smooth noise that wraps around horizontally."""
        grid = torch.randn(1, 1, rows + 1, columns, generator=dice)
        grid = torch.cat([grid, grid[..., :2]], -1)
        wide = int(_WIDTH * (columns + 2) / columns)
        fine = F.interpolate(grid, size=(_HEIGHT, wide), mode="bicubic", align_corners=False)
        return fine[0, 0, :, :_WIDTH]

    broad = noise(5, 10) + 0.6 * noise(11, 22) + 0.4 * noise(23, 46)
    tint = noise(6, 12) + 0.6 * noise(13, 26)
    middle = noise(60, 120) + 0.7 * noise(120, 240)
    fine = noise(300, 600) + 0.8 * noise(512, 1024)
    spots, count = torch.zeros(1, 1, _HEIGHT, _WIDTH), 2600
    rows = torch.randint(0, _HEIGHT, (count,), generator=dice)
    columns = torch.randint(0, _WIDTH, (count,), generator=dice)
    spots[0, 0, rows, columns] = torch.rand(count, generator=dice) * 0.8 + 0.2
    kernel = torch.exp(-((torch.arange(9) - 4.0) ** 2) / (2 * 1.7**2))
    spots = F.conv2d(spots, kernel.view(1, 1, 1, 9), padding=(0, 4))
    spots = F.conv2d(spots, kernel.view(1, 1, 9, 1), padding=(4, 0)).clamp(0, 1)[0, 0]
    relief = 0.175 * middle + 0.5 * fine - 0.8 * noise(340, 680).clamp(min=0.8)
    slope_x = (torch.roll(relief, -1, 1) - torch.roll(relief, 1, 1)) / 2
    slope_y = (torch.roll(relief, -1, 0) - torch.roll(relief, 1, 0)) / 2
    layers = [broad, tint, middle, fine, spots, slope_x, slope_y]
    return torch.stack([x if i == FRECKLES else x / x.std() for i, x in enumerate(layers)])
