"""Appearance extractor: a picture to three feature maps, once per avatar."""

from __future__ import annotations

import torch.nn.functional as F
from torch import Tensor, nn

from studio.models.blocks import LEAK, Residual

CHANNELS = (64, 24, 8)  # of the maps of 64, 128 and 256 pixels


class Appearance(nn.Module):
    """[B, 3, 512, 512] in 0..1 to maps of 64 x 64, 128 x 128 and 256 x 256."""

    def __init__(self, widths: tuple[int, int, int, int] = (24, 48, 96, 160)) -> None:
        super().__init__()
        a, b, c, d = widths

        def two(width: int) -> nn.Sequential:
            return nn.Sequential(Residual(width), Residual(width))

        self.s0, self.r0 = nn.Conv2d(3, a, 5, 2, 2), Residual(a)
        self.s1, self.r1 = nn.Conv2d(a, b, 3, 2, 1), Residual(b)
        self.s2, self.r2 = nn.Conv2d(b, c, 3, 2, 1), two(c)
        self.s3, self.r3 = nn.Conv2d(c, d, 3, 2, 1), two(d)
        self.u3, self.r4 = nn.Conv2d(d, c * 4, 1), two(c)
        self.u2, self.r5 = nn.Conv2d(c, b * 4, 1), Residual(b)
        self.u1, self.r6 = nn.Conv2d(b, a * 4, 1), Residual(a)
        self.o64 = nn.Conv2d(c, CHANNELS[0], 1)
        self.o128 = nn.Conv2d(b, CHANNELS[1], 1)
        self.o256 = nn.Conv2d(a, CHANNELS[2], 1)

    def forward(self, picture: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        a = self.r0(self.s0(picture * 2 - 1))
        b = self.r1(self.s1(F.leaky_relu(a, LEAK)))
        c = self.r2(self.s2(F.leaky_relu(b, LEAK)))
        d = self.r3(self.s3(F.leaky_relu(c, LEAK)))
        c = self.r4(c + F.pixel_shuffle(self.u3(d), 2))
        b = self.r5(b + F.pixel_shuffle(self.u2(c), 2))
        a = self.r6(a + F.pixel_shuffle(self.u1(b), 2))
        return self.o64(c), self.o128(b), self.o256(a)
