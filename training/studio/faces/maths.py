"""Small functions that geometry and shading share."""

from __future__ import annotations

import math

import torch
from torch import Tensor


def smoothstep(low: float | Tensor, high: float | Tensor, x: Tensor) -> Tensor:
    """0 at `low`, 1 at `high` (which may be the smaller one)."""
    t = ((x - low) / (high - low)).clamp(0, 1)
    return t * t * (3 - 2 * t)


def unit(x: Tensor) -> Tensor:
    return x / (x.norm(dim=-1, keepdim=True) + 1e-8)


def rotation(pitch: Tensor, yaw: Tensor, roll: Tensor) -> Tensor:
    """(Rz Ry Rx)^T [B, 3, 3] for degrees [B]; points are rows, x right, y down, z inwards."""
    p, y, r = (angle * math.pi / 180 for angle in (pitch, yaw, roll))
    one, zero = torch.ones_like(p), torch.zeros_like(p)

    def matrix(*entries: Tensor) -> Tensor:
        return torch.stack(entries, -1).view(-1, 3, 3)

    rx = matrix(one, zero, zero, zero, p.cos(), -p.sin(), zero, p.sin(), p.cos())
    ry = matrix(y.cos(), zero, y.sin(), zero, one, zero, -y.sin(), zero, y.cos())
    rz = matrix(r.cos(), -r.sin(), zero, r.sin(), r.cos(), zero, zero, zero, one)
    return (rz @ ry @ rx).transpose(1, 2)


def transform_keypoints(canonical: Tensor, motion: Tensor, basis: Tensor) -> Tensor:
    """s (x_c R + arkit . basis) + t of canonical [B, K, 3], motion [B, 59], basis [52, K, 3]."""
    turn = rotation(motion[:, 1], motion[:, 2], motion[:, 3])
    moved = (motion[:, 7:] @ basis.flatten(1)).view(len(motion), -1, 3)
    return motion[:, 0, None, None] * (canonical @ turn + moved) + motion[:, None, 4:7]
