"""Z-buffer in plain torch: the same code on a CPU and on a GPU, batched."""

from __future__ import annotations

import warnings

import torch
from torch import Tensor

_FAR = 0x7F7FFFFF << 32  # the largest float's bits above an empty triangle number
_MOST_CANDIDATES = 1 << 24  # pixels looked at in one go
_SIDES = (1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024, 2048)


def rasterise(points: Tensor, triangles: Tensor, width: int, height: int) -> tuple[Tensor, Tensor]:
    """Nearest triangles of `points` [B, n, 3] (x, y in pixels; z > 0 is distance).

    Returns the triangle's number + 1 (0 where there is none) and its distance, both [B, H, W].
    Pixel (x, y) is at (x + 0.5, y + 0.5). Equal depths go to the lower triangle number.
    """
    batch = len(points)
    keys = torch.full((batch * height * width,), _FAR, dtype=torch.int64, device=points.device)
    corners = points[:, triangles.long()]  # B, t, corner, xyz
    low = torch.ceil(corners[..., :2].amin(2) - 0.5).long()
    high = torch.floor(corners[..., :2].amax(2) - 0.5).long()
    limit = torch.tensor([width - 1, height - 1], device=points.device)
    low, high = low.clamp(min=0), torch.minimum(high, limit)
    size = (high - low + 1).amax(-1)
    seen = (high >= low).all(-1)
    smallest = 0
    for side in _SIDES:
        item, triangle = torch.where(seen & (size > smallest) & (size <= side))
        smallest = side
        chunk = max(1, _MOST_CANDIDATES // (side * side))
        for first in range(0, len(item), chunk):
            rows = slice(first, first + chunk)
            _draw(keys, corners, low, high, item[rows], triangle[rows], side, width, height)
    keys = keys.view(batch, height, width)
    depth = (keys >> 32).to(torch.int32).view(torch.float32)
    return keys & 0xFFFFFFFF, depth


def _draw(
    keys: Tensor,
    corners: Tensor,
    low: Tensor,
    high: Tensor,
    item: Tensor,
    triangle: Tensor,
    side: int,
    width: int,
    height: int,
) -> None:
    """Puts triangles whose boxes fit into side x side pixels into `keys` (depth bits, number)."""
    step = torch.arange(side, device=keys.device)
    first, last = low[item, triangle], high[item, triangle]
    x = first[:, 0, None, None] + step[None, None, :]
    y = first[:, 1, None, None] + step[None, :, None]
    inside = (x <= last[:, 0, None, None]) & (y <= last[:, 1, None, None])
    weights, flat = barycentric(corners[item, triangle][:, None, None], x + 0.5, y + 0.5)
    z = corners[item, triangle][..., 2][:, None, None]
    depth = (torch.stack(weights, -1) * z).sum(-1)
    inside = inside & ~flat & (depth > 0)
    for weight in weights:
        inside = inside & (weight >= 0)
    pixel = (item[:, None, None] * height + y) * width + x
    number = (triangle + 1)[:, None, None].expand_as(pixel)
    key = (depth.contiguous().view(torch.int32).long() << 32) | number
    with warnings.catch_warnings():  # PyTorch 1.13 calls this function a beta
        warnings.simplefilter("ignore", UserWarning)
        keys.scatter_reduce_(0, pixel[inside], key[inside], "amin")


def barycentric(corners: Tensor, x: Tensor, y: Tensor) -> tuple[tuple[Tensor, ...], Tensor]:
    """Weights of the three corners [..., 3, xyz] at (x, y), and whether the triangle is flat."""
    x0, y0 = corners[..., 0, 0], corners[..., 0, 1]
    x1, y1 = corners[..., 1, 0], corners[..., 1, 1]
    x2, y2 = corners[..., 2, 0], corners[..., 2, 1]
    area = (x1 - x0) * (y2 - y0) - (x2 - x0) * (y1 - y0)
    flat = area.abs() < 1e-9
    inverse = 1 / torch.where(flat, torch.ones_like(area), area)
    first = ((x1 - x) * (y2 - y) - (x2 - x) * (y1 - y)) * inverse
    second = ((x2 - x) * (y0 - y) - (x0 - x) * (y2 - y)) * inverse
    return (first, second, 1 - first - second), flat
