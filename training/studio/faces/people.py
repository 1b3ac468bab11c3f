"""Identities ready to be rendered: posed rest geometry, hair, ambient occlusion, backdrop."""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch
from torch import Tensor

from studio.faces import hair
from studio.faces.backdrop import paint_backdrop
from studio.faces.geometry import COLLAR, HAIR, FaceMesh, ribbon_triangles
from studio.faces.identity import Hair, Identity
from studio.faces.maths import smoothstep, unit
from studio.faces.raster import rasterise
from studio.voices.arkit import ARKIT

_EYE_LINE = (0.0, 7.29, 1.25)
_TOP_TO_EYES = 1.10
_SHOULDER = (1.45, 5.35)
_ARMS_DOWN_DEG = 38.0
OCCLUSION_DIRECTIONS, _OCCLUSION_PX = 64, 320


class Model:
    """The face mesh on a device, with what only depends on the mesh."""

    def __init__(self, mesh: FaceMesh, device: torch.device, strands: int = hair.STRANDS) -> None:
        def put(array: object, kind: torch.dtype = torch.float32) -> Tensor:
            return torch.as_tensor(array, dtype=kind, device=device)

        self.mesh, self.device = mesh, device
        self.names = [str(n) for n in mesh.identity_names]
        self.rest, self.shapes = put(mesh.vertices), put(mesh.shapes)
        self.identities = put(mesh.identities, torch.float16)
        self.attributes, self.body = put(mesh.attributes), mesh.body_vertices
        self.triangles = put(mesh.triangles, torch.int64)
        self.materials = put(mesh.materials, torch.int64)
        self.eye_directions = put(mesh.eye_directions)
        self.eye_centres, self.eye_radii = put(mesh.eye_centres), put(mesh.eye_radii)
        self.count = len(self.rest)
        self.strands = strands
        ribbons = put(ribbon_triangles(strands, hair.POINTS), torch.int64) + self.count
        self.all_triangles = torch.cat([self.triangles, ribbons])
        self.all_materials = torch.cat([self.materials, torch.full_like(ribbons[:, 0], HAIR)])
        self.total = self.count + strands * 2 * hair.POINTS
        self.lids = [self._lids_of(eye) for eye in range(2)]
        self._smooth = self.triangles[(self.materials < HAIR) | (self.materials == COLLAR)]
        y = self.rest[:, 1] + 0.6 * (self.rest[:, 2] - 0.75).clamp(min=0)
        self.follows_head = smoothstep(5.75, 6.5, y)
        self.follows_head[mesh.collar[0] : mesh.collar[1]] = 0

    def _lids_of(self, eye: int) -> Tensor:
        """Skin around an eye, which must stay outside of the eyeball."""
        offset = self.rest[: self.body] - self.eye_centres[eye]
        distance = offset.norm(dim=1) / self.eye_radii[eye]
        near = (distance < 1.7) & (distance > 0.97) & (offset[:, 2] > 0.1 * self.eye_radii[eye])
        return torch.where(near)[0]

    def eye(self, which: int) -> slice:
        first = int(self.mesh.eye_starts[which])
        return slice(first, first + len(self.eye_directions))

    def normals(self, vertices: Tensor) -> Tensor:
        """Area-weighted vertex normals of [B, count, 3]; strands have none."""
        a, b, c = (vertices[:, self._smooth[:, k]] for k in range(3))
        face = torch.cross(b - a, c - a, dim=-1)
        summed = torch.zeros_like(vertices)
        for corner in range(3):
            summed.index_add_(1, self._smooth[:, corner], face)
        return unit(summed)

    def shape(self, name: str) -> Tensor:
        return self.shapes[ARKIT.index(name)]


class Blink:
    """How far shapes "eyeBlink*" have to go to shut the eyes of an identity."""

    def __init__(self, model: Model) -> None:
        self._shapes = [model.shape("eyeBlink" + side)[: model.body] for side in ("Left", "Right")]
        rest = model.rest[: model.body]
        pairs = []
        for shape in self._shapes:
            upper = int(shape[:, 1].argmin())
            shut = rest + shape
            distance = (shut - shut[upper]).norm(dim=1)
            moves_less = shape.norm(dim=1) < 0.5 * shape[upper].norm()
            lower = int(torch.where(moves_less, distance, distance + 1e3).argmin())
            pairs.append((upper, lower))
        self._pairs = pairs
        self._left_open = [self._gap(rest + s, p) for s, p in zip(self._shapes, pairs, strict=True)]

    @staticmethod
    def _gap(vertices: Tensor, pair: tuple[int, int]) -> Tensor:
        return vertices[pair[0], 1] - vertices[pair[1], 1]

    def gains(self, vertices: Tensor) -> Tensor:
        """Factors of both shapes [2] that leave an identity's lids as close as the base mesh's."""
        gains = []
        for shape, pair, left in zip(self._shapes, self._pairs, self._left_open, strict=True):
            closes = -self._gap(shape, pair)
            gains.append(((self._gap(vertices, pair) - left) / closes).clamp(0.8, 2.0))
        return torch.stack(gains)


def rest_geometry(model: Model, identity: Identity) -> Tensor:
    """Vertices [count, 3] of an identity at rest: dressed, arms down, the hint of a smile."""
    weights = torch.zeros(len(model.names), device=model.device)
    for name, value in identity.shape.items():
        weights[model.names.index(name)] += value
    used = torch.where(weights != 0)[0]
    moved = torch.einsum("n,nvc->vc", weights[used], model.identities[used].float())
    v = model.rest + moved
    eyes = (v[model.eye(0)].mean(0) + v[model.eye(1)].mean(0)) / 2
    on_head = model.rest[: model.body, 1] > 6.4
    top = v[: model.body][on_head][:, 1].max()
    v = (v - eyes) * (_TOP_TO_EYES / (top - eyes[1]) * identity.head_size)
    v = v + torch.tensor(_EYE_LINE, device=model.device)
    v = v + 0.18 * model.shape("browInnerUp")
    for side in ("Left", "Right"):
        v = v + identity.smile * model.shape("mouthSmile" + side)
        v = v + 0.06 * model.shape("cheekSquint" + side)
    return _dress(model, _lower_arms(model, v), identity)


def _lower_arms(model: Model, v: Tensor) -> Tensor:
    arm = torch.zeros(model.count, device=model.device)
    at = model.rest[: model.body]
    arm[: model.body] = smoothstep(1.15, 1.9, at[:, 0].abs()) * (at[:, 1] < 6.0)
    for side in (1, -1):
        mine = arm * (model.rest[:, 0] * side > 0)
        angle = -side * mine * math.radians(_ARMS_DOWN_DEG)
        x, y = v[:, 0] - side * _SHOULDER[0], v[:, 1] - _SHOULDER[1]
        turned_x = angle.cos() * x - angle.sin() * y + side * _SHOULDER[0]
        turned_y = angle.sin() * x + angle.cos() * y + _SHOULDER[1]
        moves = mine > 0
        v = torch.stack(
            [torch.where(moves, turned_x, v[:, 0]), torch.where(moves, turned_y, v[:, 1]), v[:, 2]],
            1,
        )
    return v


def _dress(model: Model, v: Tensor, identity: Identity) -> Tensor:
    """Cloth gets thickness and shoulder pads; the chest under it is smoothed."""
    v = v.clone()
    at = model.rest[: model.body]
    chest = smoothstep(5.1, 4.85, at[:, 1]) * smoothstep(2.9, 3.3, at[:, 1])
    chest = chest * smoothstep(1.40, 1.2, at[:, 0].abs()) * smoothstep(0.4, 0.6, at[:, 2])
    skin = model.triangles[(model.triangles < model.body).all(1)]
    edges = torch.cat([skin[:, [0, 1]], skin[:, [1, 2]], skin[:, [2, 0]]])
    degree = torch.zeros(model.body, device=v.device)
    degree = degree.index_add(0, edges[:, 0], torch.ones(len(edges), device=v.device))
    for _ in range(30):
        around = torch.zeros(model.body, device=v.device)
        around = around.index_add(0, edges[:, 0], v[edges[:, 1], 2]) / degree.clamp(min=1)
        v[: model.body, 2] = v[: model.body, 2] * (1 - chest) + around * chest
    thick = 0.10 * smoothstep(5.80, 5.45, at[:, 1] + 0.25 * (at[:, 2] - 0.5))
    opening = lapel_distance(at[:, 0], at[:, 1])
    thick = thick * (1 - 0.5 * smoothstep(0.25, 0.0, opening) * smoothstep(0.3, 0.8, at[:, 2]))
    pads = ((at[:, 0].abs() - 1.25) / 0.45) ** 2 + ((at[:, 1] - 5.55) / 0.35) ** 2
    v[: model.body] += model.normals(v[None])[0, : model.body] * thick[:, None]
    v[: model.body, 1] += 0.16 * torch.exp(-pads) * identity.shoulder_pads
    if not identity.has_collar:
        inside_neck = torch.tensor([0.0, 5.0, 0.2], device=v.device)
        v[model.mesh.collar[0] : model.mesh.collar[1]] = inside_neck
    return v


def lapel_distance(x: Tensor, y: Tensor) -> Tensor:
    """Sideways distance to the edge of a jacket's V opening, positive inside."""
    return ((y - 3.55) / (5.75 - 3.55)).clamp(0, 1.2) * 0.60 - x.abs()


def grow_hair(model: Model, vertices: Tensor, style: Hair) -> tuple[Tensor, Tensor]:
    at, attributes = model.rest[: model.body], model.attributes[: model.body]
    head = (at[:, 1] > 6.2) & (attributes[:, 1] < 0.5) & (attributes[:, 3] < 0.3)
    return hair.grow(
        vertices,
        model.rest,
        model.triangles,
        model.materials,
        model.attributes,
        vertices[: model.body][head],
        style,
        model.strands,
    )


def ambient_occlusion(model: Model, vertices: Tensor, strands: Tensor, directions: int) -> Tensor:
    """Share of the upper light that reaches each vertex [count], from depth maps of directions."""
    device = vertices.device
    index = torch.arange(directions, device=device) + 0.5
    polar = torch.acos(1 - 1.85 * index / directions)
    around = math.pi * (1 + 5**0.5) * index
    ways = torch.stack([polar.sin() * around.cos(), polar.cos(), polar.sin() * around.sin()], 1)
    helper = torch.tensor([0.3, 0.2, 1.0], device=device).expand_as(ways)
    across = unit(torch.cross(helper, ways, dim=-1))
    upward = torch.cross(ways, across, dim=-1)
    points = torch.cat([vertices, strands]) - torch.tensor([0, 7.0, 0.3], device=device)
    normal = model.normals(vertices[None])[0]
    seen, facing = torch.zeros(model.count, device=device), torch.zeros(model.count, device=device)
    size = _OCCLUSION_PX
    for way, x_axis, y_axis in zip(ways, across, upward, strict=True):
        pixels = torch.stack([points @ x_axis, points @ y_axis], 1) / 2.4
        pixels = (pixels + 1) / 2 * size
        depth = 10 - points @ way
        _, nearest = rasterise(
            torch.cat([pixels, depth[:, None]], 1)[None], model.all_triangles, size, size
        )
        at = pixels[: model.count].long()
        inside = ((pixels[: model.count] >= 0) & (at < size)).all(1)
        at = at.clamp(0, size - 1)
        clear = depth[: model.count] < nearest[0, at[:, 1], at[:, 0]] + 0.05
        towards = (normal @ way).clamp(min=0)
        seen += (clear | ~inside).float() * towards
        facing += towards
    return _smooth_over_mesh(model, (seen / (facing + 1e-4)).clamp(0, 1))


def _smooth_over_mesh(model: Model, values: Tensor) -> Tensor:
    corners = model.triangles.reshape(-1)
    for _ in range(2):
        of_face = values[model.triangles].mean(1).repeat_interleave(3)
        total = torch.zeros_like(values).index_add(0, corners, of_face)
        count = torch.zeros_like(values).index_add(0, corners, torch.ones_like(of_face))
        values = torch.where(count > 0, total / count.clamp(min=1), values)
    return values


class People:
    """A batch of identities as tensors: [people, ...]."""

    def __init__(
        self,
        model: Model,
        identities: Sequence[Identity],
        directions: int = OCCLUSION_DIRECTIONS,
    ) -> None:
        self.model, self.identities = model, list(identities)
        vertices = [rest_geometry(model, i) for i in identities]
        strands = [grow_hair(model, v, i.hair) for v, i in zip(vertices, identities, strict=True)]
        self.vertices = torch.stack(vertices)
        blink = Blink(model)
        self.blink_gains = torch.stack([blink.gains(v) for v in vertices])
        self.hair = torch.stack([s for s, _ in strands])
        self.hair_attributes = torch.stack([a for _, a in strands])
        self.occlusion = torch.stack(
            [
                ambient_occlusion(model, v, s, directions)
                for v, (s, _) in zip(vertices, strands, strict=True)
            ]
        )
        self.looks = torch.stack([torch.from_numpy(i.row()) for i in identities]).to(model.device)
        self.backdrops = torch.stack([paint_backdrop(i.backdrop) for i in identities]).to(
            model.device
        )
