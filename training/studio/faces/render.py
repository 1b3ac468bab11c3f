"""Renders presenters: motion vectors to pictures, with the exact flow from a source picture."""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor

from studio.faces import geometry as g
from studio.faces import materials
from studio.faces.identity import LOOK_COLUMNS
from studio.faces.materials import Lights, Shaded, Surface
from studio.faces.maths import rotation, smoothstep, unit
from studio.faces.people import People
from studio.faces.raster import barycentric, rasterise
from studio.faces.texture import skin_texture
from studio.voices.arkit import ARKIT, POSE

CROP_PX = 512
ORIGIN = (0.0, 6.75, 0.45)  # of the crop's frame, in mesh units
HALF_EXTENT = 2.1  # mesh units from the crop's centre to its edge at scale 1
CANVAS_PX = (1920, 1080)
# Where crop units fall on the canvas, and where the middle of a torso does (y 0.24 at rest).
CANVAS_UNIT_PX, CANVAS_CENTRE, CANVAS_TORSO = 250.0, (960.0, 410.0), (960.0, 470.0)
_GAZE_YAW, _GAZE_UP, _GAZE_DOWN = (math.radians(d) for d in (32, 25, 28))
_SHADOW_PX, _SHADOW_EXTENT, _SHADOW_BIAS = 768, 1.35, 0.018
_SHADOW_TAPS = ((-0.9, -0.4), (0.3, -0.9), (0.8, 0.5), (-0.3, 0.9), (0, 0), (-0.6, 0.3),
                (0.5, -0.2), (0.1, 0.5), (-0.2, -0.5))  # fmt: skip
_SCATTER = (0.050, 0.024, 0.014)  # radius of light under the skin, red to blue, mesh units
FLOW_PX = 128


@dataclass(frozen=True)
class View:
    """Crop units to pixels: x * unit + centre; supersampled by `samples`."""

    width: int = CROP_PX
    height: int = CROP_PX
    unit: float = CROP_PX / 2
    centre: tuple[float, float] = (CROP_PX / 2, CROP_PX / 2)
    samples: int = 2


def canvas_view(samples: int = 2) -> View:
    return View(*CANVAS_PX, CANVAS_UNIT_PX, CANVAS_CENTRE, samples)


@dataclass(frozen=True)
class Picture:
    """Image [B, 3, H, W] in display values 0..1, vertices in crop units, nearest distances."""

    image: Tensor
    points: Tensor
    depth: Tensor
    flow: Tensor | None = None  # [B, 2, 128, 128] to positions in the source
    visible: Tensor | None = None  # [B, 1, 128, 128]


@dataclass(frozen=True)
class _Posed:
    points: Tensor  # [B, total, 3] in crop units
    normals: Tensor  # y up, z to the viewer
    vertices: Tensor  # in mesh units, before the head turns
    eye_centres: Tensor
    eye_radii: Tensor


class Renderer:
    def __init__(self, people: People) -> None:
        self.people, self.model = people, people.model
        self._texture = skin_texture().to(people.model.device)
        self._flip = torch.tensor([1.0, -1.0, -1.0], device=people.model.device)
        self._origin = torch.tensor(ORIGIN, device=people.model.device)

    def to_crop(self, vertices: Tensor) -> Tensor:
        """Mesh units to crop units (x right, y down, z into the picture)."""
        return (vertices - self._origin) / HALF_EXTENT * self._flip

    def _gaze(self, shapes: Tensor) -> Tensor:
        """Pitch (up) and yaw of both eyes in radians [B, 2, 2]."""
        eyes = []
        for side, sign in (("Left", 1), ("Right", -1)):
            look = {
                way: shapes[:, ARKIT.index(f"eyeLook{way}{side}")]
                for way in ("In", "Out", "Up", "Down")
            }
            yaw = (look["Out"] - look["In"]) * sign * _GAZE_YAW
            eyes.append(torch.stack([look["Up"] * _GAZE_UP - look["Down"] * _GAZE_DOWN, yaw], -1))
        return torch.stack(eyes, 1)

    def _turn_eyes(self, v: Tensor, shapes: Tensor) -> tuple[Tensor, Tensor]:
        """Rotates the eyeballs in place and keeps the lids outside; centres and radii."""
        model, gaze = self.model, self._gaze(shapes)
        directions = model.eye_directions
        span = (directions[-1] - directions[0]).norm()
        bulge = 1 + 0.035 * torch.exp(-(((1 - directions[:, 2]) / 0.09) ** 2))  # the cornea
        centres, radii = [], []
        for eye in range(2):
            cap = v[:, model.eye(eye)]
            radius = (cap[:, -1] - cap[:, 0]).norm(dim=-1) / span
            centre = cap[:, 0] - radius[:, None] * v.new_tensor([0, 0, 1.0])
            pitch, yaw = gaze[:, eye].unbind(1)
            one, zero = torch.ones_like(pitch), torch.zeros_like(pitch)
            ry = torch.stack([yaw.cos(), zero, yaw.sin(), zero, one, zero,
                              -yaw.sin(), zero, yaw.cos()], -1).view(-1, 3, 3)  # fmt: skip
            rx = torch.stack([one, zero, zero, zero, pitch.cos(), pitch.sin(),
                              zero, -pitch.sin(), pitch.cos()], -1).view(-1, 3, 3)  # fmt: skip
            turned = torch.einsum("bij,vj->bvi", ry @ rx, directions * bulge[:, None])
            v[:, model.eye(eye)] = centre[:, None] + turned * radius[:, None, None] * 0.985
            lids = model.lids[eye]
            offset = v[:, lids] - centre[:, None]
            distance = offset.norm(dim=-1, keepdim=True)
            least = torch.maximum(distance, radius[:, None, None] * 1.035)
            v[:, lids] = centre[:, None] + offset / distance * least
            centres.append(centre)
            radii.append(radius)
        return torch.stack(centres, 1), torch.stack(radii, 1)

    def _rest_of_blinks(self, ids: Tensor, shapes: Tensor) -> Tensor:
        """What the eyes of these people need beyond the shapes to shut."""
        more = self.people.blink_gains[ids] - 1
        names = ("eyeBlinkLeft", "eyeBlinkRight")
        amount = torch.stack([shapes[:, ARKIT.index(name)] for name in names], 1) * more
        moves = torch.stack([self.model.shape(name) for name in names])
        return torch.einsum("be,evc->bvc", amount, moves)

    def _pose(self, ids: Tensor, motion: Tensor, body: Tensor) -> _Posed:
        model, shapes = self.model, motion[:, len(POSE) :]
        moved = (shapes @ model.shapes.flatten(1)).view(len(ids), model.count, 3)
        mesh = self.people.vertices[ids] + moved + self._rest_of_blinks(ids, shapes)
        eye_centres, eye_radii = self._turn_eyes(mesh, shapes)
        normals = torch.cat([model.normals(mesh), self.people.hair_attributes[ids][..., 2:]], 1)
        v = torch.cat([mesh, self.people.hair[ids]], 1)
        still = self.to_crop(v)
        turn = rotation(motion[:, 1], motion[:, 2], motion[:, 3])
        head = motion[:, 0, None, None] * (still @ turn) + motion[:, None, 4:7]
        shift = torch.cat([body[:, 1:], torch.zeros_like(body[:, :1])], 1)
        torso = body[:, 0, None, None] * still + shift[:, None]
        hair_follows = smoothstep(5.75, 6.6, v[:, model.count :, 1])
        follows = torch.cat([model.follows_head.expand(len(ids), -1), hair_follows], 1)[..., None]
        normals = normals * self._flip
        normals = unit((normals @ turn) * follows + normals * (1 - follows)) * self._flip
        return _Posed(head * follows + torso * (1 - follows), normals, v, eye_centres, eye_radii)

    def keypoints(self, ids: Tensor, vertices: Tensor) -> Tensor:
        """Canonical keypoints [B, K, 3] in crop units: chosen vertices of the rest geometry."""
        return self.to_crop(self.people.vertices[ids][:, vertices])

    @torch.no_grad()
    def render(
        self, ids: Tensor, motion: Tensor, body: Tensor, view: View | None = None,
        source: Picture | None = None,
    ) -> Picture:  # fmt: skip
        """Pictures of people `ids` [B]; `body` [B, 3] is scale, x, y of the torso in crop units."""
        view = view or View()
        posed = self._pose(ids, motion, body)
        width, height = view.width * view.samples, view.height * view.samples
        centre = posed.points.new_tensor(view.centre)
        flat = (posed.points[..., :2] * view.unit + centre) * view.samples
        pixels = torch.cat([flat, posed.points[..., 2:] + 4], -1)
        numbers, depth = rasterise(pixels, self.model.all_triangles, width, height)
        hits = _Hits(self, ids, posed, pixels, numbers)
        shaded = hits.shade(motion)
        light = self._scatter(hits, shaded, view)
        colour = hits.image(
            torch.cat([shaded.albedo * light + shaded.added, torch.ones_like(shaded.skin)], 1)
        )
        backdrop = self._backdrop(ids, body, view)
        image = colour[:, :3] + backdrop * (1 - colour[:, 3:])
        image = tone_map(F.avg_pool2d(image, view.samples))
        flow, visible = (None, None) if source is None else hits.flow(source, view.samples)
        return Picture(image, posed.points, depth.clamp(max=100.0), flow, visible)

    def _scatter(self, hits: _Hits, shaded: Shaded, view: View) -> Tensor:
        """Light that wanders under the skin: a blur per colour, among skin pixels only."""
        mask = shaded.skin
        half = F.avg_pool2d(hits.image(torch.cat([shaded.diffuse * mask, mask], 1)), 2)
        unit_px = view.unit * view.samples / HALF_EXTENT
        blurred = []
        for channel, radius in enumerate(_SCATTER):
            sigma = max(0.6, radius * unit_px / 2)
            reach = math.ceil(sigma * 2.2)
            at = torch.arange(-reach, reach + 1, device=mask.device, dtype=torch.float32)
            kernel = torch.exp(-(at**2) / (2 * sigma**2))
            kernel = kernel / kernel.sum()
            pair = half[:, [channel, 3]].flatten(0, 1)[:, None]
            pair = F.conv2d(pair, kernel.view(1, 1, 1, -1), padding=(0, reach))
            pair = F.conv2d(pair, kernel.view(1, 1, -1, 1), padding=(reach, 0))
            value, weight = pair.view(-1, 2, *half.shape[2:]).unbind(1)
            blurred.append(value / (weight + 1e-3))
        soft = F.interpolate(
            torch.stack(blurred, 1), scale_factor=2, mode="bilinear", align_corners=False
        )
        soft = hits.pick(soft)
        return shaded.diffuse * (1 - mask) + mask * (0.55 * soft + 0.45 * shaded.diffuse)

    def _backdrop(self, ids: Tensor, body: Tensor, view: View) -> Tensor:
        """The canvas's backdrop, moving with the torso when the crop does."""
        device, samples = body.device, view.samples
        x = (torch.arange(view.width * samples, device=device) + 0.5) / samples
        y = (torch.arange(view.height * samples, device=device) + 0.5) / samples
        y, x = torch.meshgrid((y - view.centre[1]) / view.unit, (x - view.centre[0]) / view.unit,
                              indexing="ij")  # fmt: skip
        middle = CANVAS_CENTRE
        if view.width == CROP_PX:
            middle = CANVAS_TORSO
            x = (x[None] - body[:, 1, None, None]) / body[:, 0, None, None]
            y = (y[None] - body[:, 2, None, None]) / body[:, 0, None, None]
        else:
            x, y = x.expand(len(ids), -1, -1), y.expand(len(ids), -1, -1)
        canvas_x = (x * CANVAS_UNIT_PX + middle[0]) / (CANVAS_PX[0] / 2) - 1
        canvas_y = (y * CANVAS_UNIT_PX + middle[1]) / (CANVAS_PX[1] / 2) - 1
        return F.grid_sample(
            self.people.backdrops[ids].float(), torch.stack([canvas_x, canvas_y], -1),
            align_corners=False, padding_mode="border",
        )  # fmt: skip


def tone_map(light: Tensor) -> Tensor:
    """Filmic curve (Narkowicz 2015), then display gamma."""
    x = light.clamp(min=0) * 0.66
    curve = x * (2.51 * x + 0.03) / (x * (2.43 * x + 0.59) + 0.14)
    return curve.clamp(1e-5, 1) ** (1 / 2.2)


class _Hits:
    """Pixels that show something, and what they show."""

    def __init__(
        self, renderer: Renderer, ids: Tensor, posed: _Posed, pixels: Tensor, numbers: Tensor
    ) -> None:
        self._r, self._posed, self._ids = renderer, posed, ids
        self._model = renderer.model
        self.batch, self.height, self.width = numbers.shape
        self.person, self.y, self.x = torch.where(numbers > 0)
        triangle = numbers[self.person, self.y, self.x] - 1
        self._corners = self._model.all_triangles[triangle]
        weights, _ = barycentric(
            pixels[self.person[:, None], self._corners], self.x + 0.5, self.y + 0.5
        )
        self._weights = torch.stack(weights, 1)[..., None]
        self._material = self._model.all_materials[triangle]
        self._looks = renderer.people.looks[ids]
        self.lights = Lights(self._looks)

    def of_person(self, values: Tensor) -> Tensor:
        """Interpolates per-person vertex values [B, total, c]."""
        return (values[self.person[:, None], self._corners] * self._weights).sum(1)

    def of_mesh(self, values: Tensor, rows: Tensor) -> Tensor:
        """Interpolates values [count, c] shared by all people for some hits; strands get 0."""
        padded = F.pad(values, (0, 0, 0, self._model.total - len(values)))
        return (padded[self._corners[rows]] * self._weights[rows]).sum(1)

    def image(self, values: Tensor) -> Tensor:
        """Scatters values [P, c] to [B, c, H, W]."""
        out = values.new_zeros(self.batch, self.height, self.width, values.shape[1])
        out[self.person, self.y, self.x] = values
        return out.permute(0, 3, 1, 2)

    def pick(self, image: Tensor) -> Tensor:
        return image.permute(0, 2, 3, 1)[self.person, self.y, self.x]

    def _in_key_light(self, position: Tensor, normal: Tensor) -> Tensor:
        """Nine taps of a shadow map around each pixel, turned at random; "lit" outside of it."""
        points = self._posed.points * self._r._flip
        key, device = self.lights.key, position.device
        up = position.new_tensor([0, 1.0, 0]).expand_as(key)
        x_axis = unit(torch.cross(up, key, dim=-1))
        y_axis = torch.cross(key, x_axis, dim=-1)
        axes = torch.stack([x_axis, y_axis, key], 1)

        def to_map(p: Tensor) -> Tensor:
            flat = (p[..., :2] / _SHADOW_EXTENT + 1) / 2 * _SHADOW_PX
            return torch.cat([flat, 4 - p[..., 2:]], -1)

        in_light = to_map(torch.einsum("bvc,bkc->bvk", points, axes))
        _, nearest = rasterise(in_light, self._model.all_triangles, _SHADOW_PX, _SHADOW_PX)
        at = to_map(torch.einsum("pc,pkc->pk", position + normal * 0.012, axes[self.person]))
        spin = ((self.x * 12.9898 + self.y * 78.233).sin() * 43758.5).frac() * 2 * math.pi
        lit = torch.zeros(len(at), device=device)
        for tap_x, tap_y in _SHADOW_TAPS:
            x = at[:, 0] + (tap_x * spin.cos() - tap_y * spin.sin()) * 5
            y = at[:, 1] + (tap_x * spin.sin() + tap_y * spin.cos()) * 5
            x, y = x.long().clamp(0, _SHADOW_PX - 1), y.long().clamp(0, _SHADOW_PX - 1)
            lit += (at[:, 2] < nearest[self.person, y, x] + _SHADOW_BIAS).float()
        outside = ((at[:, :2] < 6) | (at[:, :2] > _SHADOW_PX - 6)).any(1)
        return torch.where(outside, torch.ones_like(lit), lit / len(_SHADOW_TAPS))

    def shade(self, motion: Tensor) -> Shaded:
        model, posed = self._model, self._posed
        normal = unit(self.of_person(posed.normals))
        position = self.of_person(posed.points * self._r._flip)
        lit = self._in_key_light(position, normal)
        occlusion = F.pad(
            self._r.people.occlusion[self._ids], (0, model.total - model.count), value=1.0
        )
        occlusion = self.of_person(occlusion[..., None])[:, 0]
        everything = torch.arange(len(normal), device=normal.device)
        rest = self.of_mesh(model.rest, everything)
        kind = self._looks[self.person][:, LOOK_COLUMNS["clothes"]][:, 0]
        material = self._material
        covered = torch.where(materials.is_clothed(rest, kind), g.CLOTH, g.SKIN)
        material = torch.where(material <= g.CLOTH, covered, material)
        parts = [torch.zeros_like(normal) for _ in range(3)] + [torch.zeros_like(normal[:, :1])]
        for kinds in (
            (g.SKIN,), (g.UPPER_TEETH, g.LOWER_TEETH), (g.TONGUE,), (g.EYE,), (g.STRAND,),
            (g.HAIR,), (g.CLOTH, g.COLLAR),
        ):  # fmt: skip
            chosen = torch.zeros_like(material, dtype=torch.bool)
            for one in kinds:
                chosen |= material == one
            rows = torch.where(chosen)[0]
            if len(rows) == 0:
                continue
            surface = Surface(
                self.person[rows], self._looks, rest[rows], normal[rows],
                self.of_mesh(model.attributes, rows), occlusion[rows], lit[rows],
            )  # fmt: skip
            done = self._shade_part(kinds[0], surface, rows, material[rows], position, motion)
            for part, value in zip(
                parts, (done.diffuse, done.albedo, done.added, done.skin), strict=True
            ):
                part[rows] = value
        return Shaded(*parts)

    def _shade_part(
        self, kind: int, s: Surface, rows: Tensor, material: Tensor, position: Tensor,
        motion: Tensor,
    ) -> Shaded:  # fmt: skip
        model, lights, posed = self._model, self.lights, self._posed
        if kind == g.SKIN:
            return materials.shade_skin(
                s, lights, self._r._texture, model.eye_centres, model.eye_radii
            )
        if kind == g.UPPER_TEETH:
            return materials.shade_teeth(s, lights, material == g.LOWER_TEETH)
        if kind == g.TONGUE:
            return materials.shade_tongue(s, lights)
        if kind == g.STRAND:
            return materials.shade_strands(s, lights)
        if kind == g.CLOTH:
            return materials.shade_clothes(s, lights, material == g.COLLAR)
        if kind == g.EYE:
            which = (s.attributes[:, 3] > 0.5).long()
            corners = posed.vertices[s.person[:, None], self._corners[rows]]
            at = (corners * self._weights[rows]).sum(1)
            centre, radius = posed.eye_centres, posed.eye_radii
            outward = (at - centre[s.person, which]) / radius[s.person, which][:, None]
            shapes = motion[:, len(POSE) :]

            def of_eye(name: str) -> Tensor:
                both = [shapes[:, ARKIT.index(name + side)] for side in ("Left", "Right")]
                return torch.stack(both, 1)[s.person, which]

            return materials.shade_eyes(s, lights, outward, of_eye("eyeBlink"), of_eye("eyeWide"))
        strand = self._corners[rows] - model.count
        stored = self._r.people.hair_attributes[self._ids][s.person[:, None], strand]
        attributes = (stored[..., :2] * self._weights[rows]).sum(1)
        first, second = (int(start) for start in model.mesh.eye_starts)
        eyes = (posed.points[:, first] + posed.points[:, second]) / 2 * self._r._flip
        middle = eyes + eyes.new_tensor([0, 0.02, -0.42])
        outward = unit(position[rows] - middle[s.person])
        strands = Surface(s.person, s.looks, s.rest, s.normal, attributes, s.occlusion, s.lit)
        return materials.shade_hair(strands, lights, outward)

    def flow(self, source: Picture, samples: int) -> tuple[Tensor, Tensor]:
        """Where each pixel's point is in the source picture, and whether it is seen there."""
        at = self.of_person(source.points)
        stacked = self.image(torch.cat([at, torch.ones_like(at[:, :1])], 1))
        step = CROP_PX // FLOW_PX * samples
        few = stacked[:, :, step // 2 :: step, step // 2 :: step]
        line = (torch.arange(FLOW_PX, device=at.device) + 0.5) / (FLOW_PX / 2) - 1
        y, x = torch.meshgrid(line, line, indexing="ij")
        shown = few[:, 3:] > 0.5
        flow = torch.where(shown, few[:, :2], torch.stack([x, y]).expand(len(few), -1, -1, -1))
        nearest = F.grid_sample(
            source.depth[:, None], flow.permute(0, 2, 3, 1), mode="nearest", align_corners=False
        )
        visible = (few[:, 2:3] + 4 < nearest + 0.03) | ~shown
        return flow, visible.float()


def neutral_motion(count: int, device: torch.device) -> tuple[Tensor, Tensor]:
    """Motion and body of presenters at rest, framed as the pack's avatars are."""
    motion = torch.zeros(count, len(POSE) + len(ARKIT), device=device)
    motion[:, 0], motion[:, 5] = 1.0, 0.24
    body = torch.zeros(count, 3, device=device)
    body[:, 0], body[:, 2] = 1.0, 0.24
    return motion, body
