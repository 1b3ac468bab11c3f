"""The studio behind a presenter: panels and lights out of focus, in linear light."""

from __future__ import annotations

import torch
from torch import Tensor

from studio.faces.identity import Backdrop

HEIGHT, WIDTH = 540, 960


def paint_backdrop(backdrop: Backdrop) -> Tensor:
    """[3, 540, 960] in fp16."""
    dice = torch.Generator().manual_seed(backdrop.seed)

    def chance(*shape: int) -> Tensor:
        return torch.rand(*(shape or (1,)), generator=dice)

    colour = torch.tensor(backdrop.colour, dtype=torch.float32).view(3, 1, 1)
    if backdrop.plain:
        return colour.expand(3, HEIGHT, WIDTH).half()
    accent = torch.tensor(backdrop.accent, dtype=torch.float32).view(3, 1, 1)
    y, x = torch.meshgrid(
        torch.linspace(0, 1, HEIGHT), torch.linspace(0, 1.78, WIDTH), indexing="ij"
    )
    glow = torch.exp(-(((x - 0.9) / 0.75) ** 2) - ((y - 0.4) / 0.55) ** 2)
    picture = colour * (0.55 + 0.6 * glow)
    for _ in range(backdrop.panels):
        left, half_width = chance() * 1.9 - 0.1, 0.03 + 0.14 * chance()
        top, height = chance() * 0.5 - 0.1, 0.25 + 0.7 * chance()
        blur, strength = 0.008 + 0.02 * chance(), (chance() - 0.35) * 0.9
        inside = torch.sigmoid((half_width - (x - left).abs()) / blur)
        inside = inside * torch.sigmoid((y - top) / blur) * torch.sigmoid((top + height - y) / blur)
        picture = picture * (1 + strength * inside * 0.7)
        picture = picture + accent * inside * strength.clamp(min=0) * 0.25
    for _ in range(backdrop.lights):
        centre_x, centre_y, radius = chance() * 1.78, chance() * 0.8, 0.012 + 0.03 * chance()
        distance = ((x - centre_x) ** 2 + (y - centre_y) ** 2).sqrt()
        disc = torch.sigmoid((radius - distance) / 0.004) * (0.10 + 0.35 * chance())
        picture = picture + disc * (accent * 0.6 + 0.25 * chance(3, 1, 1))
    return picture.clamp(0, 1.5).half()
