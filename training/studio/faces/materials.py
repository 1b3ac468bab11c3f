"""Shading of the surfaces of a presenter, in linear light, one batch of pixels at a time."""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor

from studio.faces import texture
from studio.faces.hair import above_hairline
from studio.faces.identity import KNIT, LOOK_COLUMNS, SUIT, V_NECK_JACKET
from studio.faces.maths import smoothstep, unit
from studio.faces.people import lapel_distance

_KEY_TINT, _FILL_TINT, _RIM_TINT = (1.0, 0.965, 0.92), (0.92, 0.97, 1.05), (0.95, 1.0, 1.08)
_SKY, _FLOOR = (0.95, 1.0, 1.06), (0.62, 0.5, 0.42)
_RIMS = ((0.75, 0.45, -0.55), (-0.75, 0.35, -0.6))


def gauss(x: Tensor, y: Tensor, cx: float, cy: float, sx: float, sy: float) -> Tensor:
    """A soft spot, mirrored left and right."""
    return torch.exp(-(((x.abs() - cx) / sx) ** 2) - ((y - cy) / sy) ** 2)


@dataclass(frozen=True)
class Surface:
    """Pixels of one material: everything is [P, ...]; `person` is the row in the batch."""

    person: Tensor
    looks: Tensor
    rest: Tensor  # position on the base mesh
    normal: Tensor
    attributes: Tensor
    occlusion: Tensor
    lit: Tensor  # 0 in the key light's shadow

    def look(self, name: str) -> Tensor:
        """[P, 1], or [P, 3] for colours."""
        return self.looks[self.person][:, LOOK_COLUMNS[name]]

    def number(self, name: str) -> Tensor:
        return self.look(name)[:, 0]

    def constant(self, *values: float) -> Tensor:
        return torch.tensor(values, device=self.normal.device)


@dataclass(frozen=True)
class Shaded:
    """Diffuse light and what it is multiplied with, light added on top, share of skin."""

    diffuse: Tensor
    albedo: Tensor
    added: Tensor
    skin: Tensor


class Lights:
    """Key, fill, two rims and a hemisphere, per person."""

    def __init__(self, looks: Tensor) -> None:
        def column(name: str) -> Tensor:
            return looks[:, LOOK_COLUMNS[name]]

        def tinted(name: str, gain: float, tint: tuple[float, ...]) -> Tensor:
            return column(name) * gain * torch.tensor(tint, device=looks.device)

        key_x = column("key_x")
        ahead = torch.full_like(key_x, 0.78)
        self.key = unit(torch.cat([key_x, column("key_y"), ahead], 1))
        fill = unit(looks.new_tensor([0.65, 0.10, 0.75]))
        self.fill = fill.expand(len(looks), 3) * torch.cat(
            [-torch.sign(key_x), torch.ones_like(key_x), torch.ones_like(key_x)], 1
        )
        self.rims = [unit(looks.new_tensor(r)) for r in _RIMS]
        self.key_light = tinted("key", 1.25, _KEY_TINT)
        self.fill_light = tinted("fill", 0.8, _FILL_TINT)
        self.rim_light = tinted("rim", 1.0, _RIM_TINT)
        self.ambient = column("ambient")
        self.view = looks.new_tensor([0.0, 0.0, 1.0])
        self._sky, self._floor = looks.new_tensor(_SKY), looks.new_tensor(_FLOOR)

    def diffuse(
        self, person: Tensor, normal: Tensor, wrap: tuple[float, float, float], occlusion: Tensor,
        lit: Tensor,
    ) -> Tensor:  # fmt: skip
        """Irradiance [P, 3]; `wrap` lets red light around the terminator, as skin does."""
        reach = normal.new_tensor(wrap)

        def of(light: Tensor) -> Tensor:
            cosine = (normal * light).sum(-1, keepdim=True)
            return ((cosine + reach) / (1 + reach)).clamp(min=0) ** 1.15

        up, open_ = 0.5 + 0.5 * normal[:, 1:2], occlusion[:, None]
        ambient = self.ambient[person] * (self._sky * up + self._floor * (1 - up)) * open_
        key = of(self.key[person]) * self.key_light[person] * lit[:, None]
        fill = of(self.fill[person]) * self.fill_light[person] * (0.35 + 0.65 * open_)
        rims = (of(self.rims[0]) + of(self.rims[1])) * self.rim_light[person] * 0.45 * open_
        return key + fill + rims + ambient

    def gloss(
        self, person: Tensor, normal: Tensor, rough: Tensor, facing: Tensor | float, lit: Tensor,
        occlusion: Tensor,
    ) -> Tensor:  # fmt: skip
        """Specular light [P, 3]: GGX (Walter et al. 2007) with Schlick's Fresnel."""

        def of(light: Tensor) -> Tensor:
            half = unit(light + self.view)
            nh = (normal * half).sum(-1).clamp(0, 1)
            nl = (normal * light).sum(-1).clamp(0, 1)
            nv = normal[:, 2].clamp(0.05, 1)
            vh = (self.view * half).sum(-1).clamp(0, 1)
            alpha = rough**4
            spread = alpha / (math.pi * (nh**2 * (alpha - 1) + 1) ** 2 + 1e-6)
            k = (rough + 1) ** 2 / 8
            masking = 1 / ((nl * (1 - k) + k) * (nv * (1 - k) + k) * 4)
            return (spread * (facing + (1 - facing) * (1 - vh) ** 5) * masking * nl)[:, None]

        open_ = occlusion[:, None]
        key = of(self.key[person]) * self.key_light[person] * lit[:, None]
        fill = of(self.fill[person]) * self.fill_light[person] * open_
        rims = sum((of(r.expand_as(normal)) for r in self.rims), torch.zeros_like(open_))
        return key + fill + rims * self.rim_light[person] * open_


def _skin_colour(s: Surface, noise: Tensor) -> Tensor:
    """Base tone, redness, eye shadow, freckles, brow shade, stubble."""
    x, y, z = s.rest.unbind(1)
    front = (z > 0.5).float()

    def spot(cx: float, cy: float, sx: float, sy: float) -> Tensor:
        return (gauss(x, y, cx, cy, sx, sy) * front)[:, None]

    blush = s.look("blush")
    red = 0.55 * spot(0.42, 6.95, 0.2, 0.16) + 0.65 * spot(0, 7.0, 0.13, 0.12)
    red = red + 0.35 * spot(0, 6.42, 0.2, 0.12) + 0.25 * spot(0.3, 7.05, 0.25, 0.2)
    red = (red + 0.35 * s.attributes[:, 3:4]) * (1 - 0.5 * s.look("melanin")) * blush
    mottled = 0.055 * noise[:, texture.BROAD] + 0.03 * noise[:, texture.MIDDLE]
    mottled = mottled + 0.03 * noise[:, texture.FINE]
    c = s.look("skin") * (1 + mottled[:, None])
    c = c * (1 - red * s.constant(0.02, 0.26, 0.20))
    tint = 0.07 * noise[:, texture.TINT, None] * blush
    c = c * (1 - tint * s.constant(0.1, 0.6, 0.5))
    shadow = 0.9 * spot(0.33, 7.13, 0.17, 0.07) + 0.8 * spot(0.14, 7.28, 0.06, 0.10)
    c = c * (1 - shadow * s.look("eye_shadow") * s.constant(0.20, 0.26, 0.20))
    freckles = noise[:, texture.FRECKLES, None] * s.look("freckles")
    c = c * (1 - freckles * s.constant(0.25, 0.45, 0.55) * spot(0, 7.05, 0.75, 0.35))
    lid = spot(0.33, 7.36, 0.16, 0.06) * s.look("lipstick")
    c = c * (1 - lid * s.constant(0.22, 0.36, 0.34))
    along = (x.abs() - 0.13) / 0.46
    arch = 7.50 + 0.034 * torch.sin((along * 1.15).clamp(0, 1) * math.pi * 0.72)
    arch = arch - 0.11 * (along - 0.6).clamp(0, 1)
    width = 0.050 * (1 - 0.72 * along.clamp(0, 1)) + 0.004
    brow = torch.exp(-(((y - arch) / width) ** 2) * 1.1) * (z > 0.6)
    brow = brow * smoothstep(-0.06, 0.06, along) * smoothstep(1.03, 0.8, along)
    brow = (brow * (0.62 + 0.25 * noise[:, texture.FINE]).clamp(0, 1) * 0.80)[:, None]
    c = c * (1 - brow) + (s.look("brows") * 1.6 + 0.10 * c) * brow
    beard = smoothstep(6.98, 6.72, y) * smoothstep(0.25, 0.8, z) * smoothstep(6.0, 6.35, y)
    beard = (beard[:, None] + spot(0, 6.84, 0.26, 0.05)).clamp(0, 1) * (1 - s.attributes[:, 0:1])
    grain = 0.50 + 0.22 * noise[:, texture.FINE, None]
    return c * (1 - beard * s.look("stubble") * grain * s.constant(0.85, 0.75, 0.68))


def _lash_line(s: Surface, colour: Tensor, eye_centres: Tensor, eye_radii: Tensor) -> Tensor:
    """Dark rims of the lids."""
    for centre, radius in zip(eye_centres, eye_radii, strict=True):
        offset = s.rest - centre
        distance = offset.norm(dim=1) / radius
        line = torch.exp(-(((distance - 1.03) / 0.075) ** 2)) * (s.rest[:, 2] > 1.2)
        line = line * (s.attributes[:, 1] < 0.5) * (distance < 1.3)
        line = line * torch.where(offset[:, 1] > -0.02, 0.80, 0.28)
        colour = colour * (1 - line[:, None] * s.constant(0.8, 0.85, 0.85) * 0.95)
    return colour


def sample_skin(s: Surface, skin_texture: Tensor) -> Tensor:
    """Texture values [P, 7], wrapped around the head."""
    x, y, z = s.rest.unbind(1)
    around = torch.atan2(x, z - 0.3) / (2 * math.pi) + 0.5 + s.number("texture_x")
    at = torch.stack([(around % 1) * 2 - 1, ((y - 5.4) / 3.2 % 1) * 2 - 1], -1)
    values = F.grid_sample(
        skin_texture[None], at.view(1, 1, -1, 2), padding_mode="border", align_corners=False
    )
    return values[0, :, 0].T


def shade_skin(
    s: Surface, lights: Lights, skin_texture: Tensor, eye_centres: Tensor, eye_radii: Tensor
) -> Shaded:
    noise = sample_skin(s, skin_texture)
    x, y, z = s.rest.unbind(1)
    colour = _lash_line(s, _skin_colour(s, noise), eye_centres, eye_radii)
    lipstick, scalp = s.look("lipstick"), s.look("scalp")
    lip = smoothstep(0.35, 0.75, s.attributes[:, 0:1])
    lip = lip * (1 - smoothstep(0.5, 0.9, s.attributes[:, 1:2]))
    creases = x * 150 + 2 * noise[:, texture.MIDDLE]
    wrinkled = (0.5 + 0.5 * torch.sin(creases))[:, None] * (1 - 0.4 * lipstick)
    lip_colour = s.look("lips") * (1 + 0.12 * noise[:, texture.MIDDLE, None] - 0.16 * wrinkled)
    painted = lip * (0.55 + 0.45 * lipstick) * 0.95
    colour = colour * (1 - painted) + lip_colour * painted
    inside = smoothstep(0.25, 0.75, s.attributes[:, 1:2])
    deep = torch.exp(-(1.42 - z).clamp(0, 1)[:, None] * 5.0)
    colour = colour * (1 - inside) + inside * s.constant(0.42, 0.13, 0.12) * deep
    hairy = smoothstep(-0.05, 0.10, above_hairline(x, y, z))[:, None]
    hairy = hairy * (1 - s.attributes[:, 3:4]) * scalp
    colour = colour * (1 - 0.93 * hairy) + s.look("hair") * 0.25 * 0.93 * hairy
    normal = s.normal
    across = unit(torch.cross(s.constant(0, 1.0, 0).expand_as(normal), normal, dim=-1))
    upward = torch.cross(normal, across, dim=-1)
    pores = (0.045 + 0.03 * s.look("roughness")) * (1 - 0.6 * lip) * (1 - hairy) * (1 - inside)
    slope = noise[:, texture.SLOPE_X, None] * across + noise[:, texture.SLOPE_Y, None] * upward
    forehead = gauss(x, y, 0, 7.78, 0.5, 0.16) * (z > 0.5) * s.number("age")
    lines = torch.cos((y + 0.03 * torch.sin(x * 5) + 0.012 * noise[:, texture.BROAD]) * 46)
    bumpy = normal - pores * slope * 0.9 - 0.10 * (lines * forehead)[:, None] * upward
    bumpy = unit(bumpy - 0.10 * lip * torch.cos(creases)[:, None] * across)
    in_mouth, on_lip = inside[:, 0], lip[:, 0]
    occlusion = s.occlusion * (1 - in_mouth) + in_mouth * 0.9
    occlusion = torch.where(on_lip > 0.3, occlusion.clamp(min=0.35), occlusion)
    lit = torch.where(in_mouth > 0.5, torch.full_like(s.lit, 0.6), s.lit)
    smooth = unit(normal * 0.6 + bumpy * 0.4)
    diffuse = lights.diffuse(s.person, smooth, (0.34, 0.17, 0.11), occlusion, lit)
    rough = 0.44 + 0.06 * noise[:, texture.TINT]
    rough = rough - 0.06 * gauss(x, y, 0, 7.3, 0.3, 0.5) * (z > 0.5)
    rough = rough * (1 - on_lip) + on_lip * (0.40 - 0.128 * lipstick[:, 0])
    melanin = s.look("melanin")
    broad = lights.gloss(s.person, bumpy, rough + 0.03, 0.028 + 0.02 * on_lip, lit, occlusion)
    sharp = lights.gloss(s.person, bumpy, rough * 0.72, 0.028, lit, occlusion)
    gloss = broad * (0.55 - 0.15 * melanin) + sharp * (0.16 - 0.08 * melanin) * (1 - 0.5 * hairy)
    open_ = occlusion[:, None]
    edge = (1 - normal[:, 2].clamp(0, 1)) ** 4 * 0.10
    added = gloss * (1 - 0.6 * inside) * (1 - 0.8 * hairy) * open_**0.5
    added = added + edge[:, None] * lights.rim_light[s.person] * open_
    return Shaded(diffuse, colour, added, 1 - inside)


def shade_teeth(s: Surface, lights: Lights, lower: Tensor) -> Shaded:
    height, across = s.attributes[:, 0], s.attributes[:, 1]
    from_middle = (2 * across - 1).abs()
    gum = smoothstep(0.36, 0.26, height - 0.10 * from_middle**2)[:, None]
    gap = 1 - 0.38 * smoothstep(0.93, 1.0, from_middle)[:, None] * (1 - gum)
    enamel = s.constant(0.86, 0.80, 0.70) * s.look("teeth")
    yellow = smoothstep(0.7, 0.35, height)[:, None] * s.constant(0.2, 0.6, 1.0)
    enamel = enamel * (1 - 0.10 * yellow)
    colour = (enamel * (1 - gum) + gum * s.constant(0.55, 0.20, 0.19)) * gap
    depth = torch.exp(-(1.50 - s.rest[:, 2]).clamp(min=0) * 2.6)
    shade = depth * torch.where(lower, 0.78, 1.0) * (0.6 + 0.4 * s.lit)
    normal = s.normal * torch.where(s.normal[:, 2:3] < 0, -1.0, 1.0)
    one = torch.ones_like(shade)
    diffuse = 0.25 + 0.75 * lights.diffuse(s.person, normal, (0.5, 0.45, 0.4), one, one)
    gloss = lights.gloss(s.person, normal, torch.full_like(height, 0.22), 0.045, shade, shade)
    return Shaded(
        diffuse * shade[:, None] * 0.95, colour, gloss * 0.5 * shade[:, None], 0 * shade[:, None]
    )


def shade_tongue(s: Surface, lights: Lights) -> Shaded:
    depth = torch.exp(-(1.40 - s.rest[:, 2]).clamp(min=0) * 3.0)
    diffuse = lights.diffuse(s.person, s.normal, (0.35, 0.2, 0.18), depth, depth * 0.8)
    rough = torch.full_like(depth, 0.35)
    gloss = lights.gloss(s.person, s.normal, rough, 0.04, depth * 0.8, depth)
    colour = s.constant(0.62, 0.25, 0.23).expand(len(depth), 3)
    return Shaded(diffuse * depth[:, None], colour, gloss * 0.5, 0 * depth[:, None])


def shade_eyes(s: Surface, lights: Lights, outward: Tensor, blink: Tensor, wide: Tensor) -> Shaded:
    """`outward` is the direction from the eye's centre; lids shade the ball from above."""
    d = unit(s.attributes[:, :3])
    polar = torch.acos(d[:, 2].clamp(-1, 1))
    angle = torch.atan2(d[:, 1], d[:, 0])
    white = s.constant(0.78, 0.74, 0.70)
    white = white * (1 - 0.20 * smoothstep(0.5, 1.2, polar)[:, None] * s.constant(0.3, 0.9, 1.0))
    veins = torch.sin(angle * 17 + 3 * torch.sin(polar * 9)) * torch.sin(angle * 41 + polar * 20)
    veins = (veins.clamp(min=0.35) - 0.35) * smoothstep(0.55, 0.95, polar)
    white = white * (1 - veins[:, None] * s.constant(0.05, 0.45, 0.45))
    q = polar / 0.46  # 1 at the rim of the iris
    fibres = 0.5 + 0.25 * torch.sin(angle * 37 + 4 * torch.sin(q * 5))
    fibres = fibres + 0.25 * torch.sin(angle * 71 + 1.3)
    iris = 0.55 + 0.75 * (fibres * smoothstep(0.3, 0.9, q))[:, None]
    iris = iris + 0.25 * smoothstep(0.6, 0.4, q)[:, None] * s.constant(1.1, 0.8, 0.5)
    iris = s.look("iris") * iris * (1 - 0.75 * smoothstep(0.78, 1.0, q)[:, None])
    pupil = smoothstep(0.40, 0.35, q)[:, None]
    iris = iris * (1 - pupil) + 0.004 * pupil
    in_iris = smoothstep(1.08, 0.94, q)[:, None]
    colour = white * (1 - in_iris) + iris * in_iris
    colour = colour * (1 - 0.25 * torch.exp(-(((q - 1.05) / 0.12) ** 2))[:, None])
    lid = 0.42 - 0.75 * blink + 0.15 * wide - 0.12 * outward[:, 0] ** 2
    open_ = 0.38 + 0.62 * smoothstep(0.02, -0.42, outward[:, 1] - lid)
    open_ = open_ * (1 - 0.45 * smoothstep(0.45, 0.95, outward[:, 0].abs()))
    normal = unit(outward)
    diffuse = lights.diffuse(
        s.person, normal, (0.35, 0.25, 0.2), open_, open_ * (0.5 + 0.5 * s.lit)
    )
    mirrored = 2 * normal[:, 2:3] * normal - lights.view
    glint = torch.zeros_like(open_)
    for light, size, strength in (
        (lights.key[s.person], 0.17, 1.0),
        (lights.fill[s.person], 0.12, 0.35),
    ):
        distance = (mirrored - light).norm(dim=-1) * 0.5
        glint = glint + strength * smoothstep(size * 1.25, size * 0.75, distance)
    room = 0.05 * smoothstep(-0.2, 0.8, mirrored[:, 1])
    added = (glint * 1.25 + room * in_iris[:, 0])[:, None] * smoothstep(0.25, 0.6, open_)[:, None]
    added = added * (0.25 + 0.75 * in_iris) + 0.06 * glint[:, None]
    return Shaded(diffuse, colour, added, 0 * open_[:, None])


def shade_strands(s: Surface, lights: Lights) -> Shaded:
    """Brows and lashes."""
    brow = s.attributes[:, 2:3] < 1.5
    hairs = s.look("brows") * (1.0 + 0.7 * s.attributes[:, 3:4]) + s.look("skin") * 0.09
    colour = torch.where(brow, hairs, s.constant(0.018, 0.014, 0.012).expand_as(hairs))
    facing = lights.view.expand_as(hairs)
    shade = torch.full_like(s.lit, 0.8)
    diffuse = lights.diffuse(s.person, facing, (0.3, 0.3, 0.3), shade, 0.4 + 0.6 * s.lit)
    return Shaded(diffuse, colour, torch.zeros_like(colour), torch.zeros_like(colour[:, :1]))


def shade_hair(s: Surface, lights: Lights, outward: Tensor) -> Shaded:
    """Kajiya and Kay 1989 with shifted highlights; the "normal" is the strand's tangent."""
    along, chance, tangent = s.attributes[:, 0], s.attributes[:, 1], s.normal
    base = s.look("hair")
    colour = base * ((0.74 + 0.32 * chance.clamp(-0.3, 1.3)) * (0.62 + 0.45 * along))[:, None]
    key, fill = lights.key[s.person], lights.fill[s.person]
    rims = [r.expand_as(tangent) for r in lights.rims]

    def spread(light: Tensor) -> Tensor:
        sine = (1 - (tangent * light).sum(-1) ** 2).clamp(min=0).sqrt()
        facing = ((outward * light).sum(-1) * 0.5 + 0.5).clamp(0, 1)
        return (sine * (0.35 + 0.65 * facing))[:, None]

    def shine(light: Tensor, shift: Tensor, exponent: float) -> Tensor:
        shifted = unit(tangent + shift[:, None] * outward)
        cosine = (shifted * unit(light + lights.view)).sum(-1)
        sine = (1 - cosine**2).clamp(min=0).sqrt()
        return (sine**exponent * smoothstep(-0.6, 0.2, (outward * light).sum(-1)))[:, None]

    shadow = (0.25 + 0.75 * s.lit)[:, None]
    open_ = ((0.45 + 0.55 * along) * (0.55 + 0.45 * smoothstep(-0.6, 0.6, outward[:, 1])))[:, None]
    key_light, rim_light = lights.key_light[s.person], lights.rim_light[s.person]
    fill_light = lights.fill_light[s.person]
    diffuse = spread(key) * key_light * shadow * 0.75 + spread(fill) * fill_light * 0.7 * open_
    diffuse = diffuse + (spread(rims[0]) + spread(rims[1])) * rim_light * 0.30
    diffuse = diffuse + lights.ambient[s.person] * 0.55 * open_
    jitter = 0.22 * (chance - 0.5)
    primary = shine(key, jitter - 0.10, 70) * 0.13
    secondary = shine(key, jitter + 0.12, 22) * 0.5 * base * 1.6
    behind = (shine(rims[0], jitter, 30) + shine(rims[1], jitter, 30)) * (0.05 + 0.5 * base)
    from_fill = shine(fill, jitter + 0.05, 30) * 0.18 * (0.2 + base)
    added = (primary + secondary) * key_light * shadow * open_
    added = added + behind * rim_light * open_ * 0.8 + from_fill * fill_light * open_
    return Shaded(diffuse, colour * open_**0.6, added, torch.zeros_like(open_))


@dataclass(frozen=True)
class Cloth:
    colour: Tensor
    height: Tensor
    rough: Tensor


def _cloth(s: Surface, rest: Tensor) -> Cloth:
    """Colour and relief of the clothes at `rest` [P, 3]."""
    x, y, z = rest.unbind(1)
    kind = s.number("clothes")
    inside = lapel_distance(x, y)
    from_middle = x.abs()
    front = smoothstep(0.30, 0.55, z)
    low_edge = (y > 3.5).float()
    opening = smoothstep(-0.008, 0.008, inside) * front * low_edge
    width = 0.17 + 0.26 * smoothstep(3.55, 5.0, y) * smoothstep(5.85, 5.1, y)
    notch = (y - (4.98 - 0.25 * (from_middle - 0.6))).abs()
    lapel = smoothstep(width + 0.01, width - 0.01, -inside) * (1 - opening) * front * low_edge
    lapel = lapel * (1 - smoothstep(0.015, 0.005, notch) * smoothstep(0.10, 0.2, -inside))
    edge = torch.exp(-(((-inside - width) / 0.012) ** 2)) * front * (y > 3.55) * (1 - opening)
    knot = torch.where(y > 5.46, 0.075 + 0.24 * (y - 5.46), 0.062 + 0.13 * smoothstep(5.46, 3.6, y))
    tie = smoothstep(0.008, -0.008, from_middle - knot) * opening
    tie = tie * (kind == SUIT) * (y < 5.70)
    pins = smoothstep(0.985, 1.0, torch.cos(x * 52)) * s.number("stripes")
    jacket = s.look("jacket")
    colour = jacket * ((1 + 0.9 * pins) * (1 - 0.35 * edge) * (1 + 0.10 * lapel))[:, None]
    colour = colour * (1 - opening[:, None]) + s.look("shirt") * opening[:, None]
    diagonal = 0.5 + 0.5 * torch.sign(torch.sin((x + y) * 22))
    silk = s.look("tie") * (0.8 + 0.35 * diagonal[:, None])
    colour = colour * (1 - tie[:, None]) + silk * tie[:, None]
    under_knot = torch.exp(-(((y - 5.46) / 0.018) ** 2)) * tie
    seam = torch.exp(-((inside / 0.022) ** 2)) * front * (y > 3.55)
    colour = colour * ((1 - 0.6 * under_knot) * (1 - 0.45 * seam))[:, None]
    knit = kind == KNIT
    ribs = torch.cos(x * 120)
    colour = torch.where(knit[:, None], jacket * (1 + 0.10 * ribs[:, None]), colour)
    round_tie = 1 - (from_middle / knot.clamp(min=0.05)) ** 2 * 0.5
    height = 0.035 * lapel + 0.012 * (1 - opening) - 0.02 * edge + 0.03 * tie * round_tie
    folds = torch.sin(x * 5 + y * 3) * smoothstep(5.2, 4.5, y)
    sleeve = torch.sin(y * 7 - from_middle * 4.5) * (from_middle > 1.2)
    height = height + 0.010 * folds + 0.012 * sleeve
    return Cloth(colour, torch.where(knit, 0.004 * ribs, height), 0.62 - 0.2 * tie)


def shade_clothes(s: Surface, lights: Lights, collar: Tensor) -> Shaded:
    """Jacket, shirt, tie, knit; `collar` marks pixels of the separate collar."""
    cloth, step = _cloth(s, s.rest), 0.02
    shift_x, shift_y = s.constant(step, 0, 0), s.constant(0, step, 0)
    slope_x = (_cloth(s, s.rest + shift_x).height - cloth.height) / step
    slope_y = (_cloth(s, s.rest + shift_y).height - cloth.height) / step
    front = smoothstep(0.35, 0.6, s.rest[:, 2])[:, None]
    relief = torch.stack([slope_x, slope_y, torch.zeros_like(slope_x)], 1)
    normal = unit(s.normal - front * relief * 0.8)
    is_collar = collar[:, None]
    fold = 0.35 * smoothstep(0.9, 1.0, s.attributes[:, 0])
    fold = fold + 0.3 * smoothstep(0.3, 0.0, s.attributes[:, 0])
    colour = torch.where(is_collar, s.look("shirt") * 0.95 * (1 - fold)[:, None], cloth.colour)
    two_sided = s.normal * torch.sign(s.normal[:, 2:3] + 0.35)
    normal = unit(torch.where(is_collar, two_sided, normal))
    occlusion = torch.where(collar, s.occlusion.clamp(min=0.45), s.occlusion)
    weave = torch.sin(s.rest[:, 0] * 260) * torch.sin(s.rest[:, 1] * 260) * ~collar
    diffuse = lights.diffuse(s.person, normal, (0.15, 0.15, 0.15), occlusion, s.lit)
    fuzz = ((1 - normal[:, 2].clamp(0, 1)) ** 3)[:, None] * 0.03
    fuzz = fuzz * (lights.key_light[s.person] * s.lit[:, None] + 0.4) * occlusion[:, None]
    gloss = lights.gloss(s.person, normal, cloth.rough, 0.03, s.lit, occlusion) * 0.35
    added = fuzz * (s.look("jacket") * 2 + 0.15) + gloss
    return Shaded(diffuse, colour * (1 + 0.10 * weave)[:, None], added, 0 * fuzz[:, :1])


def is_clothed(rest: Tensor, kind: Tensor) -> Tensor:
    """Whether a point of the body is under clothes, by the neckline of each kind."""
    x, y, z = rest.unbind(1)
    radius = torch.hypot(x, z - 0.28)
    front = (z - 0.28) / radius.clamp(min=0.01) * 0.5 + 0.5
    body = y < 6.0 - 0.36 * front**1.5
    away = (radius > 0.60 + 0.12 * (1 - front)) & (y < 6.12)
    body = body | (away & (x.abs() > 0.42) & (z < 1.0))
    across = (x.abs() / 0.62).clamp(max=1.0)
    neckline = torch.full_like(y, 9.0)
    neckline = torch.where(kind > SUIT, 5.50 + 0.30 * across**2, neckline)
    neckline = torch.where(kind == V_NECK_JACKET, 4.95 + 0.85 * across, neckline)
    neckline = torch.where(kind == KNIT, 5.62 + 0.25 * across**2, neckline)
    in_opening = (z > 0.35) & (lapel_distance(x, y) > 0) & (kind < KNIT)
    in_knit = (kind == KNIT) & (z > 0.3) & (x.abs() < 0.62)
    return body & ~((in_opening | in_knit) & (y > neckline))
