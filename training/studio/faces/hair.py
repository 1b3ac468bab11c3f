"""Hair: strands grown from the scalp, kept outside the head, drawn as ribbons."""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor

from studio.faces.geometry import SKIN
from studio.faces.identity import Hair
from studio.faces.maths import smoothstep, unit

STRANDS, POINTS = 6000, 12
ATTRIBUTES = 5  # along the strand, chance, tangent

_HEAD_CENTRE = (0.0, 7.45, 0.30)
_TAPER = (0.8, 1, 1, 1, 1, 1, 1, 0.95, 0.9, 0.8, 0.5, 0.1)
_HAIRLINE_ANGLE = (0, 0.35, 0.62, 0.8, 1.0, 1.2, 1.45, 1.75, 2.0, 2.4, 3.15)
_HAIRLINE_Y = (8.02, 8.0, 7.93, 7.72, 7.48, 7.30, 7.28, 7.42, 7.05, 6.72, 6.62)
_FALLING = ("long", "bob")
_COMBED = ("long", "bob", "side", "back")


def above_hairline(x: Tensor, y: Tensor, z: Tensor) -> Tensor:
    """Height over the hairline of the base mesh; positive on the scalp."""
    around = torch.atan2(x.abs(), z - 0.35)
    angles = torch.tensor(_HAIRLINE_ANGLE, device=x.device)
    heights = torch.tensor(_HAIRLINE_Y, device=x.device)
    right = torch.bucketize(around, angles).clamp(1, len(_HAIRLINE_ANGLE) - 1)
    span = angles[right] - angles[right - 1]
    share = ((around - angles[right - 1]) / span).clamp(0, 1)
    return y - (heights[right - 1] * (1 - share) + heights[right] * share)


class HeadRadius:
    """Distance of the head's surface from its centre, by direction."""

    def __init__(self, vertices: Tensor, around: int = 64, up: int = 40) -> None:
        self.centre = torch.tensor(_HEAD_CENTRE, device=vertices.device)
        offset = vertices - self.centre
        distance = offset.norm(dim=1)
        angle = torch.linspace(-math.pi, math.pi, around, device=vertices.device)
        height = torch.linspace(-1, 1, up, device=vertices.device)
        angle, height = torch.meshgrid(angle, height, indexing="ij")
        level = (1 - height**2).clamp(min=0).sqrt()
        wanted = torch.stack([angle.sin() * level, height, angle.cos() * level], -1).view(-1, 3)
        weights = torch.exp((wanted @ (offset / distance[:, None]).T - 1) * 220)
        radius = (weights * distance).sum(1) / (weights.sum(1) + 1e-9)
        self._table = radius.view(1, 1, around, up)

    def __call__(self, direction: Tensor) -> Tensor:
        turn = torch.atan2(direction[:, 0], direction[:, 2]) / math.pi
        at = torch.stack([direction[:, 1], turn], -1).view(1, 1, -1, 2)
        return F.grid_sample(self._table, at, align_corners=True, padding_mode="border")[0, 0, 0]


@dataclass(frozen=True)
class _Roots:
    point: Tensor
    normal: Tensor
    upness: Tensor  # 1 on top of the head, 0 at its sides
    volume: Tensor


@dataclass(frozen=True)
class _Growth:
    """Length, first direction, push along the normal and pull of gravity of a style."""

    length: Tensor
    direction: Tensor
    lift: Tensor
    gravity: float


class _Dice:
    def __init__(self, seed: int, device: torch.device, strands: int) -> None:
        self.strands = strands
        self._generator, self._device = torch.Generator().manual_seed(seed), device

    def uniform(self, *shape: int) -> Tensor:
        return torch.rand(*shape, generator=self._generator).to(self._device)

    def normal(self, *shape: int) -> Tensor:
        return torch.randn(*shape, generator=self._generator).to(self._device)

    def pick(self, weights: Tensor, count: int) -> Tensor:
        picked = torch.multinomial(weights.cpu(), count, True, generator=self._generator)
        return picked.to(self._device)


def grow(
    vertices: Tensor, rest: Tensor, triangles: Tensor, materials: Tensor, attributes: Tensor,
    head: Tensor, hair: Hair, strands: int = STRANDS,
) -> tuple[Tensor, Tensor]:  # fmt: skip
    """Ribbon vertices [v, 3] and attributes [v, 5] for an identity's `vertices`.

    `rest` are the same vertices of the base mesh (the hairline is drawn on it), `head` those that
    hair must stay outside of.
    """
    device = vertices.device
    if hair.style == "bald":
        count = strands * 2 * POINTS
        below = torch.full((count, 3), -50.0, device=device)
        return below, torch.zeros(count, ATTRIBUTES, device=device)
    dice = _Dice(hair.seed, device, strands)
    roots = _roots(vertices, rest, triangles[materials == SKIN], attributes, hair, dice)
    phase = roots.point @ torch.tensor(
        [[3.1, 1.7, 2.3], [2.7, -2.1, 1.1], [-1.3, 3.3, 2.9]], device=device
    )
    waves = torch.sin(phase * 1.5 + hair.seed) + 0.5 * torch.sin(phase * 3.7)
    clumps = torch.sin(phase * 9.0 + hair.seed * 2)
    growth = _growth(roots, hair, dice)
    direction = growth.direction + growth.lift[:, None] * roots.normal
    direction = direction + 0.10 * waves * (0.5 if hair.style == "buzz" else 1.0)
    direction = unit(direction + 0.06 * clumps + hair.mess * dice.normal(dice.strands, 3))
    lines = _follow(roots, direction, growth, HeadRadius(head), hair, dice)
    return _as_ribbons(lines, clumps[:, 0], hair, dice)


def _roots(
    vertices: Tensor, rest: Tensor, triangles: Tensor, attributes: Tensor, hair: Hair, dice: _Dice
) -> _Roots:
    middle = rest[triangles].mean(1)
    temple = torch.exp(-(((middle[:, 0].abs() - 0.45) / 0.25) ** 2)) * (middle[:, 2] > 0.6)
    height = above_hairline(*middle.unbind(1)) - hair.recede * temple
    ears, inside = attributes[triangles, 3].mean(1), attributes[triangles, 1].mean(1)
    on_scalp = (height > 0) & (ears < 0.3) & (inside < 0.5) & (middle[:, 1] > 6.5)
    triangles, middle, height = triangles[on_scalp], middle[on_scalp], height[on_scalp]
    a, b, c = vertices[triangles].unbind(1)
    normal = torch.cross(b - a, c - a, dim=-1)
    dense = 1 + 1.2 * (middle[:, 2] > 0.2).float() + 1.5 * torch.exp(-((height / 0.12) ** 2))
    if hair.style in ("side", *_FALLING):  # no bald line where the hair parts
        dense = dense * (1 + 2 * torch.exp(-(((middle[:, 0] - hair.part) / 0.08) ** 2)))
    chosen = dice.pick(normal.norm(dim=1) * dense, dice.strands)
    share = dice.uniform(dice.strands, 2)
    share = torch.where(share.sum(1, keepdim=True) > 1, 1 - share, share)

    def on_surface(points: Tensor) -> Tensor:
        p, q, r = points[triangles[chosen]].unbind(1)
        return p + (q - p) * share[:, :1] + (r - p) * share[:, 1:]

    point = on_surface(vertices)
    volume = torch.full_like(point[:, 0], hair.volume)
    if hair.style in ("side", *_FALLING):
        from_part = (point[:, 0] - hair.part).abs()
        volume = volume * (0.35 + 0.65 * smoothstep(0.0, 0.5, from_part))
    upness = smoothstep(7.6, 8.3, on_surface(rest)[:, 1])
    return _Roots(point, unit(normal[chosen]), upness, volume)


def _growth(roots: _Roots, hair: Hair, dice: _Dice) -> _Growth:
    x, y = roots.point[:, 0], roots.point[:, 1]
    up, one = roots.upness, torch.ones_like(x)
    side = torch.sign(x - hair.part + 0.03 * dice.normal(dice.strands))
    chance = dice.uniform(dice.strands)
    if hair.style == "side":
        way = torch.where(x > hair.part, one, -one) * (0.35 + 0.65 * up)
        direction = torch.stack([way, -0.9 * (1 - up) + 0.05, -0.55 * up + 0.1], 1)
        length = (0.30 + 0.42 * up) * (0.8 + 0.4 * chance) * hair.length
        return _Growth(length, direction, 0.55 * up * roots.volume, 0.25)
    if hair.style in _FALLING:
        end = (5.55 if hair.style == "long" else 6.15) - hair.length * 0.15 + 0.15
        length = ((y - end).clamp(min=0.3) * 1.08 + 0.35 * up) * (0.93 + 0.12 * chance)
        off_face = 0.5 * smoothstep(0.5, 1.0, roots.point[:, 2])
        back = -0.35 * up - 0.1 * (1 - up) - off_face
        direction = torch.stack([side * (0.8 * up + 0.15), -0.8 * (1 - up) - 0.1, back], 1)
        return _Growth(length, direction, 0.32 * up * roots.volume, 0.9)
    if hair.style == "back":
        direction = torch.stack([0.12 * torch.sign(x), 0.15 * up - 0.35 * (1 - up), -one], 1)
        length = (0.55 + 0.45 * up) * (0.8 + 0.3 * chance)
        return _Growth(length, direction, 0.28 * up * roots.volume, 0.15)
    loose = 0.5 * dice.normal(dice.strands, 3)
    if hair.style == "curly":
        length = (0.30 + 0.28 * up) * (0.7 + 0.5 * chance) * hair.length
        return _Growth(length, roots.normal * 0.9 + loose, 0.8 * one, 0.12)
    direction = torch.stack([0 * one, -0.6 * (1 - up), 0.6 * up - 0.2], 1) + loose
    length = (0.09 + 0.10 * up) * (0.7 + 0.5 * chance) * hair.length
    return _Growth(length, direction, 0.45 * one, 0.1)


def _follow(
    roots: _Roots, direction: Tensor, growth: _Growth, head: HeadRadius, hair: Hair, dice: _Dice
) -> Tensor:
    """Centre lines [strands, POINTS, 3], step by step from the roots."""
    falling = hair.style in _FALLING
    gap = 0.012 + 0.05 * dice.uniform(dice.strands) ** 1.5
    gap = gap + (0.06 * dice.uniform(dice.strands) if falling else 0)
    gap = gap * (1 + 1.8 * roots.upness) * roots.volume
    step = growth.length / (POINTS - 1)
    curl_phase = dice.uniform(dice.strands) * 2 * math.pi
    down = torch.tensor([0, -1.0, 0], device=direction.device)
    at = roots.point - roots.normal * 0.01
    line = [at]
    for index in range(1, POINTS):
        direction = unit(direction + down * (growth.gravity * index / POINTS) * 0.6)
        at = at + direction * step[:, None]
        if hair.curl > 0:
            turn = curl_phase + index * hair.curl_rate
            coil = torch.stack([turn.cos(), 0.4 * turn.sin(), turn.sin()], 1)
            at = at + hair.curl * step[:, None] * coil
        from_centre = at - head.centre
        distance = from_centre.norm(dim=1)
        on_head = smoothstep(6.35, 6.75, at[:, 1])
        least = head(from_centre / distance[:, None]) + gap * min(1, index / 3.0)
        push = (least * on_head - distance).clamp(min=0)
        if hair.style in _COMBED:
            most = least + 0.035 + 0.075 * roots.upness * roots.volume
            push = push - (distance - most).clamp(min=0) * on_head * (index > 1)
        at = at + from_centre / distance[:, None] * push[:, None]
        if falling:
            at = _around_neck(at, 1 - on_head, gap)
        direction = unit(at - line[-1]) * 0.75 + direction * 0.25
        if falling:
            narrow = 1 - 0.45 * (1 - on_head)
            direction = direction * torch.stack([narrow, torch.ones_like(narrow), narrow], 1)
        line.append(at)
    return torch.stack(line, 1)


def _around_neck(at: Tensor, below: Tensor, gap: Tensor) -> Tensor:
    """Below the jaw: outside the neck, off the face, over the shoulders."""
    x, z = at[:, 0], at[:, 2] - 0.3
    radius = torch.hypot(x, z)
    out = (0.60 + gap - radius).clamp(min=0) * below
    out = out - (radius - (0.92 + gap * 1.6)).clamp(min=0) * below * 0.5
    around = torch.stack([x / radius, torch.zeros_like(radius), z / radius], 1)
    x, y, z = (at + around * out[:, None]).unbind(1)
    before_face = smoothstep(0.55, 0.95, z) * smoothstep(7.9, 7.5, y)
    x = x + torch.sign(x) * ((0.70 + gap * 0.6) - x.abs()).clamp(min=0) * before_face
    shoulder = 5.98 - 0.42 * (x.abs() - 0.55).clamp(min=0)
    depth = (shoulder + 0.05 - y).clamp(min=0) * (1 - smoothstep(0.9, 1.1, z))
    to_front = torch.where(z > 0.25, 1.0, -0.8)
    return torch.stack([x, y + depth * 0.3, z + depth * 0.8 * to_front], 1)


def _as_ribbons(lines: Tensor, clump: Tensor, hair: Hair, dice: _Dice) -> tuple[Tensor, Tensor]:
    device = lines.device
    steps = lines[:, 1:] - lines[:, :-1]
    tangent = unit(torch.cat([steps, steps[:, -1:]], 1))
    centre = torch.tensor(_HEAD_CENTRE, device=device)
    outward = unit(torch.tensor([0, 0, 1.0], device=device) + 0.5 * unit(lines - centre))
    side = unit(torch.cross(tangent, outward.expand_as(tangent), dim=-1))
    width = hair.strand_width * torch.tensor(_TAPER, device=device)
    half = side * (width * (0.7 + 0.6 * dice.uniform(dice.strands, 1)))[..., None] / 2
    vertices = torch.stack([lines - half, lines + half], 2).reshape(-1, 3)
    along = torch.linspace(0, 1, POINTS, device=device)
    along = along.view(1, POINTS, 1).expand(dice.strands, POINTS, 2).reshape(-1, 1)
    chance = (dice.uniform(dice.strands) + 0.35 * clump).view(-1, 1, 1)
    chance = chance.expand(dice.strands, POINTS, 2).reshape(-1, 1)
    tangents = tangent[:, :, None].expand(-1, -1, 2, -1).reshape(-1, 3)
    return vertices, torch.cat([along, chance, tangents], 1)
