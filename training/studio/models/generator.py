"""Warp and decoder: keypoints and an avatar's features to a picture.

Expressions move keypoints by half a pixel where the pose moves them by a hundred. So keypoints are
whitened before an MLP turns them into a code, and that MLP is trained first, without pictures, to
tell the expression and the pose (`fit/keypoint_code.py`); otherwise the mouth never opens.
"""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from studio.models.appearance import CHANNELS
from studio.models.blocks import LEAK, Film, Residual, pixel_grid, warp_by

CODE, WHITE, SPREAD = 160, 144, 20
_REGIONS, _REGION_CODE = 3, 12  # mouth and eyes get maps of their own
_REGION_MAPS = _REGIONS * (2 + _REGION_CODE)
FIELD = _REGION_MAPS + 2 * SPREAD + 2
_NARROW, _WIDE = 0.035, 0.11  # radius of a keypoint's influence, in crop units
_SIZE = 64


class KeypointCode(nn.Module):
    """Source and driving keypoints to a code [B, 160]."""

    mean: Tensor
    whitening: Tensor

    def __init__(self, keypoints: int, hidden: int = 320) -> None:
        super().__init__()
        self.register_buffer("mean", torch.zeros(6 * keypoints))
        self.register_buffer("whitening", torch.eye(6 * keypoints)[:, :WHITE].clone())
        self.a, self.b = nn.Linear(WHITE, hidden), nn.Linear(hidden, hidden)
        self.c = nn.Linear(hidden, CODE)

    def forward(self, source: Tensor, driving: Tensor) -> Tensor:
        x = torch.cat([source.flatten(1), driving.flatten(1)], 1) - self.mean
        h = F.silu(self.a(x @ self.whitening))
        h = h + F.silu(self.b(h))
        out: Tensor = self.c(h)
        return out


class Warp(nn.Module):
    """f64 and keypoints to flow [B, 2, 128, 128], occlusion, code and keypoint maps."""

    grid: Tensor
    identity: Tensor
    region_weights: Tensor

    def __init__(self, keypoints: int, widths: tuple[int, int, int] = (32, 64, 96)) -> None:
        super().__init__()
        self.code = KeypointCode(keypoints)
        self.regions = nn.Linear(CODE, _REGIONS * _REGION_CODE)
        self.register_buffer("region_weights", torch.zeros(_REGIONS, keypoints))
        self.phi = nn.Parameter(torch.randn(2, keypoints, 9, SPREAD) * 0.3)
        self.register_buffer("grid", pixel_grid(_SIZE).flatten(1).T[None].contiguous())
        self.register_buffer("identity", pixel_grid(2 * _SIZE)[None])
        a, b, c = widths
        self.features = nn.Conv2d(CHANNELS[0], 12, 1)
        self.inp, self.e0 = nn.Conv2d(12 + FIELD + 2, a, 3, 1, 1), Residual(a, CODE)
        self.d1, self.e1 = nn.Conv2d(a, b, 3, 2, 1), Residual(b, CODE)
        self.d2 = nn.Conv2d(b, c, 3, 2, 1)
        self.e2a, self.e2b = Residual(c, CODE), Residual(c, CODE)
        self.u1, self.e3 = nn.Conv2d(c, b * 4, 1), Residual(b, CODE)
        self.u0, self.e4 = nn.Conv2d(b, a * 4, 1), Residual(a, CODE)
        self.out = nn.Conv2d(a, 12, 3, 1, 1)
        nn.init.zeros_(self.out.weight)
        nn.init.zeros_(self.out.bias)

    def _spread(self, source: Tensor, driving: Tensor) -> tuple[Tensor, Tensor]:
        """What keypoints say around them [B, 4096, 2 SPREAD] and the flow that they ask for."""
        moved = source - driving
        squared = ((self.grid[:, :, None] - driving[:, None, :, :2]) ** 2).sum(-1)
        narrow = torch.exp(-squared / (2 * _NARROW**2))
        wide = torch.exp(-squared / (2 * _WIDE**2))
        wide = wide / (wide.sum(-1, keepdim=True) + 1e-3)
        facts = torch.cat([moved * 8, driving, source], -1)[:, :, None]
        near = narrow @ (facts @ self.phi[0])[:, :, 0]
        far = wide @ (facts @ self.phi[1])[:, :, 0]
        return torch.cat([near, far], -1), wide @ moved[..., :2]

    def _region_maps(self, driving: Tensor, code: Tensor) -> Tensor:
        """Coordinates around mouth and eyes and their part of the code, where they are."""
        centre = self.region_weights @ driving[..., :2]
        local = (self.grid[:, None] - centre[:, :, None]) * 8.0
        near = torch.exp(-0.5 * (local**2).sum(-1, keepdim=True))
        said = self.regions(code).view(-1, _REGIONS, 1, _REGION_CODE)
        said = said.expand(-1, -1, _SIZE * _SIZE, -1)
        maps = near * torch.cat([local, said], -1)
        return maps.permute(0, 1, 3, 2).reshape(-1, _REGION_MAPS, _SIZE, _SIZE)

    def forward(
        self, f64: Tensor, source: Tensor, driving: Tensor
    ) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        code = self.code(source, driving)
        said, asked = self._spread(source, driving)
        here = self.grid.expand_as(asked)
        maps = torch.cat([said, asked * 8, here], -1).transpose(1, 2)
        maps = maps.reshape(-1, 2 * SPREAD + 4, _SIZE, _SIZE)
        field = torch.cat([self._region_maps(driving, code), maps], 1)
        x = self.e0(self.inp(torch.cat([self.features(f64), field], 1)), code)
        y = self.e1(self.d1(F.leaky_relu(x, LEAK)), code)
        z = self.e2b(self.e2a(self.d2(F.leaky_relu(y, LEAK)), code), code)
        y = self.e3(y + F.pixel_shuffle(self.u1(z), 2), code)
        x = self.e4(x + F.pixel_shuffle(self.u0(y), 2), code)
        out = F.pixel_shuffle(self.out(F.leaky_relu(x, LEAK)), 2)
        coarse = asked.transpose(1, 2).reshape(-1, 2, _SIZE, _SIZE)
        coarse = F.interpolate(coarse, scale_factor=2, mode="bilinear", align_corners=False)
        flow = self.identity + coarse + out[:, :2] * 0.1
        return flow, torch.sigmoid(out[:, 2:3] + 2), code, field[:, :-2]


class Decoder(nn.Module):
    """Warped features and picture to the crop [B, 3, 512, 512]: warped colours or new ones."""

    def __init__(self, widths: tuple[int, int, int] = (64, 32, 16)) -> None:
        super().__init__()
        a, b, c = widths
        self.i = nn.Conv2d(CHANNELS[0] + FIELD, a, 1)
        self.r0, self.r1 = Residual(a, CODE), Residual(a, CODE)
        self.u0, self.i1 = nn.Conv2d(a, 80, 1), nn.Conv2d(20 + CHANNELS[1] + 1, b, 3, 1, 1)
        self.r2 = Residual(b, CODE)
        self.u1, self.i2 = nn.Conv2d(b, 48, 1), nn.Conv2d(12 + CHANNELS[2], c, 3, 1, 1)
        self.f2, self.c2 = Film(c, CODE), nn.Conv2d(c, c, 3, 1, 1)
        self.o = nn.Conv2d(c, 16, 3, 1, 1)

    def parts(
        self, f64: Tensor, f128: Tensor, f256: Tensor, rgb: Tensor, flow: Tensor,
        occlusion: Tensor, z: Tensor, field: Tensor,
    ) -> tuple[Tensor, Tensor, Tensor]:  # fmt: skip
        """The picture, its newly drawn part and the warped source."""
        double = F.interpolate(flow, scale_factor=2, mode="bilinear", align_corners=False)
        fourfold = F.interpolate(flow, scale_factor=4, mode="bilinear", align_corners=False)
        w64 = warp_by(f64, F.avg_pool2d(flow, 2)) * F.avg_pool2d(occlusion, 2)
        w128, w256 = warp_by(f128, flow) * occlusion, warp_by(f256, double)
        warped = warp_by(rgb, fourfold)
        x = self.r1(self.r0(self.i(torch.cat([w64, field], 1)), z), z)
        x = F.pixel_shuffle(self.u0(F.leaky_relu(x, LEAK)), 2)
        x = self.r2(self.i1(torch.cat([x, w128, occlusion], 1)), z)
        x = F.pixel_shuffle(self.u1(F.leaky_relu(x, LEAK)), 2)
        x = F.leaky_relu(self.f2(self.i2(torch.cat([x, w256], 1)), z), LEAK)
        x = x + self.c2(x)
        out = F.pixel_shuffle(self.o(F.leaky_relu(x, LEAK)), 2)
        keep, drawn = torch.sigmoid(out[:, 3:4]), torch.sigmoid(out[:, :3])
        return warped * keep + drawn * (1 - keep), drawn, warped

    def forward(
        self, f64: Tensor, f128: Tensor, f256: Tensor, rgb: Tensor, flow: Tensor,
        occlusion: Tensor, z: Tensor, field: Tensor,
    ) -> Tensor:  # fmt: skip
        return self.parts(f64, f128, f256, rgb, flow, occlusion, z, field)[0]
