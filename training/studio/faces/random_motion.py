"""Random poses and expressions that cover what performances use, and more."""

from __future__ import annotations

import torch
from torch import Tensor

from studio.voices.arkit import BLENDSHAPE, MOTION_DIMS, PITCH, POSE, ROLL, SCALE, YAW

_SINGLE = {
    "mouthFunnel": (0.3, 0.9), "mouthPucker": (0.3, 0.9), "mouthRollLower": (0.2, 0.8),
    "mouthRollUpper": (0.2, 0.7), "mouthShrugLower": (0.2, 0.8), "mouthShrugUpper": (0.2, 0.7),
    "jawForward": (0.1, 0.6), "cheekPuff": (0.06, 0.7), "browInnerUp": (0.3, 1.0),
}  # fmt: skip
_PAIRED = {
    "mouthSmile": (0.4, 0.9), "mouthFrown": (0.15, 0.7), "mouthDimple": (0.2, 0.7),
    "mouthStretch": (0.25, 0.8), "mouthPress": (0.2, 0.8), "mouthLowerDown": (0.4, 0.9),
    "mouthUpperUp": (0.35, 0.9), "cheekSquint": (0.25, 0.9), "noseSneer": (0.15, 0.8),
    "browDown": (0.25, 0.9), "browOuterUp": (0.25, 0.9), "eyeSquint": (0.25, 0.9),
    "eyeWide": (0.15, 0.8),
}  # fmt: skip
_POSE_STD_DEG = {PITCH: (5.5, 20), YAW: (8.5, 32), ROLL: (4.0, 14)}


def random_body(count: int, device: torch.device, fixed: Tensor) -> Tensor:
    """Framing [B, 3] (scale, x, y) of the torso; people marked `fixed` are framed as they ship."""
    body = torch.zeros(count, 3, device=device)
    body[:, 0] = 1 + 0.10 * (torch.rand(count, device=device) * 2 - 1)
    body[:, 1] = 0.06 * torch.randn(count, device=device).clamp(-1.5, 1.5)
    body[:, 2] = 0.24 + 0.05 * torch.randn(count, device=device).clamp(-1.5, 1.5)
    body[fixed] = torch.tensor([1.0, 0.0, 0.24], device=device)
    return body


def random_motion(body: Tensor, calm_share: float = 0.0) -> Tensor:
    """Motion [B, 59] around the framing; `calm_share` of them are nearly at rest (for sources)."""
    count, device = len(body), body.device
    motion = torch.zeros(count, MOTION_DIMS, device=device)

    def chance() -> Tensor:
        return torch.rand(count, device=device)

    def normal() -> Tensor:
        return torch.randn(count, device=device)

    def some(probability: float, most: float, alpha: float = 1.2, beta: float = 2.0) -> Tensor:
        drawn = torch.distributions.Beta(alpha, beta).sample((count,)).to(device)
        return (chance() < probability).float() * drawn * most

    def put(name: str, value: Tensor) -> None:
        motion[:, BLENDSHAPE[name]] = value.clamp(0, 1)

    jaw = some(0.8, 0.8, 1.1, 2.2)
    put("jawOpen", jaw)
    put("mouthClose", jaw * (chance() < 0.15) * chance() * 0.9)
    for name, (probability, most) in _SINGLE.items():
        put(name, some(probability, most))
    put("tongueOut", some(0.06, 0.8, 1.0, 1.5) * (jaw > 0.15))
    for name, (probability, most) in _PAIRED.items():
        value = some(probability, most)
        for side in ("Left", "Right"):
            put(name + side, value * (1 + 0.25 * normal()))
    for name in ("jaw", "mouth"):
        shift = (chance() < 0.12) * normal() * 0.3
        put(name + "Left", shift.clamp(0, 0.6))
        put(name + "Right", (-shift).clamp(0, 0.6))
    shut = torch.distributions.Beta(1.0, 0.8).sample((count,)).to(device)
    blink = torch.where(chance() < 0.25, shut, chance() * 0.12)
    put("eyeBlinkLeft", blink + 0.03 * normal())
    put("eyeBlinkRight", torch.where(chance() < 0.05, chance(), blink + 0.03 * normal()))
    sideways, up = (normal() * 0.35).clamp(-0.85, 0.85), (normal() * 0.25).clamp(-0.7, 0.7)
    for outer, inner, amount in (("Left", "Right", sideways), ("Right", "Left", -sideways)):
        put("eyeLookOut" + outer, amount)
        put("eyeLookIn" + inner, amount)
    for side in ("Left", "Right"):
        put("eyeLookUp" + side, up)
        put("eyeLookDown" + side, -up)
    gain = torch.where(chance() < 0.15, 1.8, 1.0)
    if calm_share > 0:
        motion[:, len(POSE) :] *= torch.where(chance() < calm_share, 0.12, 1.0)[:, None]
        gain = torch.full_like(gain, 0.7)
    for dim, (std, most) in _POSE_STD_DEG.items():
        motion[:, dim] = (normal() * std * gain).clamp(-most, most)
    motion[:, SCALE] = body[:, 0] * (1 + 0.015 * normal())
    for dim, column in (("tx", 1), ("ty", 2)):
        motion[:, POSE.index(dim)] = body[:, column] + 0.012 * normal()
    return motion
