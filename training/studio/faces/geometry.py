"""Geometry that MakeHuman lacks, bound to its surface: teeth, rotating eyes, lashes, brows, collar.

`build` returns everything the renderer needs as arrays; `FaceMesh.load` keeps them in one .npz.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from pathlib import Path

import numpy as np
import numpy.typing as npt

from studio.faces.makehuman import Array, Indices, MakeHuman

SKIN, CLOTH, EYE, UPPER_TEETH, LOWER_TEETH, TONGUE, HAIR, STRAND, COLLAR = range(1, 10)

_DESK_Y, _ARM_X, _CHEST_Y = -0.6, 3.3, 5.55
_EYE_RINGS, _EYE_SEGMENTS = 24, 48
_TEETH = 14
_COLUMNS_PER_TOOTH, _TOOTH_ROWS = 8, 10
_LASHES = (("helper-l-eyelashes-2", True), ("helper-r-eyelashes-2", True),
           ("helper-l-eyelashes-1", False), ("helper-r-eyelashes-1", False))  # fmt: skip
_BROW_STRANDS = 480
_NECK_CENTRE_Z = 0.28
_SEED = 5


@dataclass(frozen=True)
class FaceMesh:
    """Rest vertices, ARKit shapes, identity shapes, attributes and triangles with materials.

    Attributes [n, 4]: skin (lips, inside of the mouth, lids, ears); teeth (height 0 gum..1 tip,
    across, number, -); eyes (direction, which eye); strands (along, -, 1 brow 2 lash, chance);
    collar (across, around, -, -). The first `body_vertices` are the body's.
    """

    vertices: Array
    shapes: Array
    identities: Array
    identity_names: npt.NDArray[np.str_]
    attributes: Array
    triangles: Indices
    materials: Indices
    body_vertices: int
    eye_starts: Indices
    eye_directions: Array
    eye_centres: Array
    eye_radii: Array
    collar: Indices

    def save(self, path: Path) -> None:
        np.savez(path, **{f.name: getattr(self, f.name) for f in fields(self)})

    @staticmethod
    def load(path: Path) -> FaceMesh:
        with np.load(path, allow_pickle=False) as stored:
            values = {f.name: stored[f.name] for f in fields(FaceMesh)}
        values["body_vertices"] = int(values["body_vertices"])
        return FaceMesh(**values)


def split_quads(quads: Indices) -> Indices:
    return np.concatenate([quads[:, [0, 1, 2]], quads[:, [0, 2, 3]]])


class _Builder:
    """Collects parts whose vertices move with a weighted mean of base vertices."""

    def __init__(self, source: MakeHuman, details: bool) -> None:
        self.source, self.base = source, source.base
        self.shapes = source.face_units()
        targets = source.identity_targets(details)
        self.names, self.identities = list(targets), np.stack(list(targets.values()))
        self.parts: dict[str, list[Array]] = {k: [] for k in ("p", "a", "i", "attr", "t", "m")}
        self.count = 0

    def add(
        self,
        points: Array,
        triangles: Indices,
        material: int | Indices,
        bound: Indices,
        weights: Array,
        attributes: Array | None = None,
    ) -> int:
        """`bound` [n, k] base vertices with `weights` [n, k]; returns the first new vertex."""
        return self.add_free(
            points,
            triangles,
            material,
            np.einsum("svkc,vk->svc", self.shapes[:, bound], weights),
            np.einsum("svkc,vk->svc", self.identities[:, bound], weights),
            attributes,
        )

    def add_free(
        self,
        points: Array,
        triangles: Indices,
        material: int | Indices,
        shapes: Array,
        identities: Array,
        attributes: Array | None = None,
    ) -> int:
        first = self.count
        self.count += len(points)
        if attributes is None:
            attributes = np.zeros((len(points), 4))
        materials = np.broadcast_to(np.asarray(material), len(triangles))
        values = (points, shapes, identities, attributes, triangles + first, materials)
        for key, value in zip(self.parts, values, strict=True):
            self.parts[key].append(np.asarray(value))
        return first


def nearest_weights(
    points: Array, candidates: Array, count: int, soft: float = 1e-5
) -> tuple[Indices, Array]:
    """Indices [n, count] of the nearest candidates and inverse-square-distance weights."""
    squared = ((points[:, None] - candidates[None]) ** 2).sum(-1)
    index = np.argsort(squared, axis=1)[:, :count]
    weights = 1 / (np.take_along_axis(squared, index, 1) + soft)
    return index, weights / weights.sum(1, keepdims=True)


def build(source: MakeHuman, details: bool = True) -> FaceMesh:
    b = _Builder(source, details)
    body = _add_body(b)
    _add_teeth(b, "helper-upper-teeth", upper=True)
    _add_teeth(b, "helper-lower-teeth", upper=False)
    tongue = b.base.of_group("helper-tongue")
    local = np.full(len(b.base.vertices), -1)
    local[tongue] = np.arange(len(tongue))
    quads = b.base.quads[b.base.groups == "helper-tongue"]
    b.add(
        b.base.vertices[tongue],
        split_quads(local[quads]),
        TONGUE,
        tongue[:, None],
        np.ones((len(tongue), 1)),
    )
    starts, directions, centres, radii = _add_eyes(b)
    rng = np.random.default_rng(_SEED)
    _add_lashes(b, centres, rng)
    _add_brows(b, body, rng)
    collar = _add_collar(b, body)
    joined = {k: np.concatenate(v, axis=1 if k in "ai" else 0) for k, v in b.parts.items()}
    return FaceMesh(
        joined["p"].astype(np.float32),
        joined["a"].astype(np.float16),
        joined["i"].astype(np.float16),
        np.array(b.names),
        joined["attr"].astype(np.float32),
        joined["t"].astype(np.int64),
        joined["m"].astype(np.int64),
        len(body),
        starts,
        directions,
        centres,
        radii,
        collar,
    )


def _add_body(b: _Builder) -> Indices:
    """Everything above the desk without the hands; returns the base vertices that are kept."""
    v = b.base.vertices
    kept = (v[:, 1] > _DESK_Y) & (np.abs(v[:, 0]) < _ARM_X)
    quads = b.base.quads[b.base.groups == "body"]
    quads = quads[kept[quads].all(1)]
    ids = np.unique(quads)
    local = np.full(len(v), -1)
    local[ids] = np.arange(len(ids))
    material = np.where(v[quads].mean(1)[:, 1] > _CHEST_Y, SKIN, CLOTH)
    masks = [b.source.mask(n)[ids] for n in ("lips", "inside-mouth", "eyelids", "ears")]
    b.add(
        v[ids],
        split_quads(local[quads]),
        np.concatenate([material, material]),
        ids[:, None],
        np.ones((len(ids), 1)),
        np.stack(masks, 1),
    )
    return ids


def _add_teeth(b: _Builder, group: str, upper: bool) -> None:
    """Fourteen single teeth on the arc of MakeHuman's row, wide and long as real ones."""
    ids = b.base.of_group(group)
    row = b.base.vertices[ids]
    half_width, front = 0.29, row[:, 2].max() - (0.01 if upper else 0.03)
    back = row[:, 2].min()
    angle = np.linspace(-1, 1, 113) * np.pi * 0.49
    arc_x = half_width * np.sin(angle)
    arc_z = back + (front - back) * np.cos(angle) ** 0.9
    along = np.concatenate([[0], np.cumsum(np.hypot(np.diff(arc_x), np.diff(arc_z)))])
    if upper:  # central incisor to molar
        widths, heights = [0.085, 0.068, 0.075, 0.07, 0.07, 0.1, 0.1], [
            1.0, 0.90, 0.99, 0.88, 0.82, 0.72, 0.68]  # fmt: skip
    else:
        widths, heights = [0.053, 0.058, 0.068, 0.07, 0.07, 0.1, 0.1], [
            0.90, 0.92, 1.0, 0.9, 0.85, 0.8, 0.8]  # fmt: skip
    width = np.array(widths[::-1] + widths) / (2 * sum(widths))
    height = np.array(heights[::-1] + heights)
    edge = np.concatenate([[0], np.cumsum(width)])
    inside = np.linspace(0, 1, _COLUMNS_PER_TOOTH + 1)[:-1]
    tooth = np.append(np.repeat(np.arange(_TEETH), _COLUMNS_PER_TOOTH), _TEETH - 1)
    across = np.append(np.tile(inside, _TEETH), 1.0)
    from_middle = np.abs(2 * across - 1)
    column = (edge[tooth] + across * width[tooth]) * along[-1]
    length = height[tooth] * (1 - 0.12 * from_middle**4)
    bulge = -(from_middle**3)
    x, z = np.interp(column, along, arc_x), np.interp(column, along, arc_z)
    normal = np.stack([-np.gradient(z, column), np.gradient(x, column)])
    normal /= np.linalg.norm(normal, axis=0)
    normal *= np.sign((normal[0] * x + normal[1] * (z - back)).sum())
    gum, size = (6.80, 6.80 - 6.585) if upper else (6.38, 6.605 - 6.38)
    points, attributes = [], []
    for line in range(_TOOTH_ROWS):
        v = line / (_TOOTH_ROWS - 1)  # 0 at the gum, 1 at the tip
        depth = 0.018 * bulge * np.clip((v - 0.2) / 0.2, 0, 1) + 0.012 * np.sin(
            np.pi * min(1, v * 1.1)
        )
        depth = depth - 0.02 * (v > 0.95) - (0.008 if v >= 0.9 else 0.0)
        drop = v * size * 0.98 * length
        y = gum - drop if upper else gum + drop
        points.append(np.stack([x + normal[0] * depth, y, z + normal[1] * depth - 0.02], 1))
        attributes.append(
            np.stack([np.full(len(x), v), across, tooth / (_TEETH - 1), np.zeros(len(x))], 1)
        )
    flat = np.concatenate(points)
    bound, weights = nearest_weights(flat, row, len(ids), 0.02)
    b.add(
        flat,
        grid_triangles(_TOOTH_ROWS, len(x)),
        UPPER_TEETH if upper else LOWER_TEETH,
        ids[bound],
        weights,
        np.concatenate(attributes),
    )


def grid_triangles(rows: int, columns: int) -> Indices:
    """Two triangles per cell of a rows x columns grid of vertices."""
    corner = (np.arange(rows - 1)[:, None] * columns + np.arange(columns - 1)[None]).ravel()
    first = np.stack([corner, corner + 1, corner + columns], 1)
    second = np.stack([corner + 1, corner + columns + 1, corner + columns], 1)
    return np.concatenate([first, second])


def _add_eyes(b: _Builder) -> tuple[Indices, Array, Array, Array]:
    """Front caps of two spheres; identity moves and scales them, gaze turns them later."""
    polar = np.pi * 0.62 * np.arange(_EYE_RINGS + 1)[:, None] / _EYE_RINGS
    around = 2 * np.pi * np.arange(_EYE_SEGMENTS)[None] / _EYE_SEGMENTS
    directions = np.stack(
        [np.sin(polar) * np.cos(around), np.sin(polar) * np.sin(around),
         np.broadcast_to(np.cos(polar), (_EYE_RINGS + 1, _EYE_SEGMENTS))], -1
    ).reshape(-1, 3)  # fmt: skip
    ring, segment = np.divmod(np.arange(_EYE_RINGS * _EYE_SEGMENTS), _EYE_SEGMENTS)
    left = ring * _EYE_SEGMENTS + segment
    right = ring * _EYE_SEGMENTS + (segment + 1) % _EYE_SEGMENTS
    triangles = np.concatenate(
        [np.stack([left, right, left + _EYE_SEGMENTS], 1),
         np.stack([right, right + _EYE_SEGMENTS, left + _EYE_SEGMENTS], 1)]
    )  # fmt: skip
    starts, centres, radii = [], [], []
    for which, group in enumerate(("helper-l-eye", "helper-r-eye")):
        ids = b.base.of_group(group)
        helper = b.base.vertices[ids]
        centre = (helper.max(0) + helper.min(0)) / 2
        radius = float((helper.max(0) - helper.min(0))[:2].mean() / 2)
        centre[2] = helper[:, 2].max() - radius * 1.06
        offset = b.identities[:, ids]
        around_mean = helper - helper.mean(0)
        growth = (offset * around_mean[None]).sum((1, 2)) / (around_mean**2).sum()
        moves = offset.mean(1)[:, None] + growth[:, None, None] * (directions * radius)[None]
        attributes = np.concatenate([directions, np.full((len(directions), 1), which)], 1)
        still = np.zeros((len(b.shapes), len(directions), 3))
        points = centre + directions * radius
        starts.append(b.add_free(points, triangles, EYE, still, moves, attributes))
        centres.append(centre)
        radii.append(radius)
    return np.array(starts), directions.astype(np.float32), np.array(centres), np.array(radii)


def ribbons(centre_lines: Array, widths: Array) -> tuple[Array, Indices, Array]:
    """Flat strips that face the front: vertices, triangles, position along each (0 root..1 tip)."""
    strands, points, _ = centre_lines.shape
    tangent = np.gradient(centre_lines, axis=1)
    tangent /= np.linalg.norm(tangent, axis=-1, keepdims=True) + 1e-9
    side = np.cross(tangent, np.array([0, 0, 1.0]))
    side /= np.linalg.norm(side, axis=-1, keepdims=True) + 1e-6
    half = side * widths[None, :, None] / 2
    vertices = np.stack([centre_lines - half, centre_lines + half], 2).reshape(-1, 3)
    return (
        vertices,
        ribbon_triangles(strands, points),
        np.tile(np.repeat(np.linspace(0, 1, points), 2), strands),
    )


def ribbon_triangles(strands: int, points: int) -> Indices:
    left = 2 * np.arange(points - 1)
    one = np.concatenate(
        [np.stack([left, left + 1, left + 2], 1), np.stack([left + 1, left + 3, left + 2], 1)]
    )
    all_strands = one[None] + (np.arange(strands) * 2 * points)[:, None, None]
    return all_strands.reshape(-1, 3)


def _add_lashes(b: _Builder, centres: Array, rng: np.random.Generator) -> None:
    for group, upper in _LASHES:
        ids = b.base.of_group(group)
        helper = b.base.vertices[ids]
        eye = centres[0] if "-l-" in group else centres[1]
        distance = np.linalg.norm(helper - eye, axis=1)
        lines = []
        for x in _lash_roots(helper[:, 0], upper):
            near = np.flatnonzero(np.abs(helper[:, 0] - x) < 0.02)
            if len(near) < 2:
                continue
            root = helper[near[np.argmin(distance[near])]].copy()
            root[0] = x
            root[2] += 0.015  # in front of the lid
            way = helper[near[np.argmax(distance[near])]] - root
            # Near the corners the helper lies flat: lashes go up or down all the same.
            way[0] = np.clip(way[0], -0.35 * abs(way[1]), 0.35 * abs(way[1]))
            way[0] += rng.normal(0, 0.004) + (x - eye[0]) * 0.12
            length = (0.040 if upper else 0.015) * rng.uniform(0.7, 1.1)
            way = way / np.linalg.norm(way) * length
            curl = np.array([0, (0.35 if upper else -0.2) * length, 0])
            lines.append([root + way * t + curl * t * t for t in np.linspace(0, 1, 4)])
        strands = np.array(lines)
        vertices, triangles, along = ribbons(strands, np.array([0.0048, 0.0042, 0.003, 0.001]))
        bound, weights = nearest_weights(np.repeat(strands[:, 0], 8, 0), helper, 3)
        chance = np.repeat(rng.random(len(strands)), 8)
        attributes = np.stack([along, along * 0, np.full_like(along, 2), chance], 1)
        b.add(vertices, triangles, STRAND, ids[bound], weights, attributes)


def _lash_roots(x: Array, upper: bool) -> Array:
    """Positions along a lid; the corners have none, the outer one least."""
    inner, outer = sorted((x.min(), x.max()), key=abs)
    first, last, count = (0.12, 0.82, 64) if upper else (0.28, 0.72, 20)
    return inner + (outer - inner) * np.linspace(first, last, count)


def _add_brows(b: _Builder, body: Indices, rng: np.random.Generator) -> None:
    v = b.base.vertices
    inside = b.source.mask("inside-mouth")
    at = v[body]
    on_face = (at[:, 1] > 7.2) & (at[:, 1] < 7.75) & (at[:, 2] > 0.9) & (inside[body] < 0.5)
    face = body[on_face]
    for sign in (1, -1):
        t = rng.random(_BROW_STRANDS) ** 0.95
        offset = rng.uniform(-1, 1, _BROW_STRANDS)
        root_x = 0.135 + t * 0.455 + rng.normal(0, 0.014, len(t)) * (1 - t)
        arch = 7.50 + 0.034 * np.sin(np.clip(t * 1.15, 0, 1) * np.pi * 0.72)
        root_y = arch - 0.11 * np.clip(t - 0.6, 0, 1) + offset * (0.048 * (1 - 0.75 * t) + 0.006)
        degrees = 40 - 50 * np.clip(t * 1.6, 0, 1) - 12 * offset + rng.normal(0, 6, len(t))
        length = 0.062 * (1 - 0.2 * t) * (0.45 + 0.55 * np.clip(t * 4, 0, 1))
        length = length * rng.uniform(0.7, 1.1, len(t))
        angle = np.deg2rad(degrees)
        lines = []
        for s in np.linspace(0, 1, 5):
            x = root_x + np.cos(angle) * length * s
            y = root_y + np.sin(angle) * length * s * (1 - 0.25 * s)
            squared = ((np.stack([x, y], 1)[:, None] - v[face][None, :, :2]) ** 2).sum(-1)
            near = np.argsort(squared, 1)[:, :5]
            weights = 1 / (np.sqrt(np.take_along_axis(squared, near, 1)) + 1e-3)
            z = (v[face][near][:, :, 2] * weights).sum(1) / weights.sum(1)
            lift = 0.008 + 0.008 * np.sin(np.pi * min(1, s * 0.9))
            lines.append(np.stack([x * sign, y, z + lift], 1))
        strands = np.stack(lines, 1)
        vertices, triangles, along = ribbons(
            strands, np.array([0.003, 0.0042, 0.004, 0.003, 0.001])
        )
        bound, weights = nearest_weights(np.repeat(strands[:, 1], 10, 0), v[face], 6, 5e-3)
        chance = np.repeat(rng.random(len(t)), 10)
        attributes = np.stack([along, np.repeat(t, 10), np.ones_like(along), chance], 1)
        b.add(vertices, triangles, STRAND, face[bound], weights, attributes)


def _add_collar(b: _Builder, body: Indices) -> Indices:
    """A shirt collar: a ring around the neck that folds over and parts at the front."""
    at = b.base.vertices[body]
    near = (at[:, 1] > 5.2) & (at[:, 1] < 6.3) & (np.abs(at[:, 0]) < 1.0)
    neck = body[near]
    v = b.base.vertices[neck]
    direction = np.arctan2(v[:, 0], v[:, 2] - _NECK_CENTRE_Z)
    distance = np.hypot(v[:, 0], v[:, 2] - _NECK_CENTRE_Z)

    def radius(angle: float, y: float) -> float:
        turn = np.abs((direction - angle + np.pi) % (2 * np.pi) - np.pi)
        weights = np.exp(-((turn / 0.25) ** 2) - ((v[:, 1] - y) / 0.09) ** 2)
        return float((weights * distance).sum() / (weights.sum() + 1e-9))

    angles = np.linspace(-np.pi, np.pi, 97)
    rows = []
    for angle in angles:
        front = np.cos(angle) * 0.5 + 0.5
        top = 6.04 - 0.20 * front**1.5
        point = max(0.0, 1 - abs(abs(angle) - 0.38) / 0.5)
        gap = max(0.0, 1 - abs(angle) / 0.16)
        bottom = top - 0.20 - 0.20 * point + 0.16 * gap
        inner = radius(angle, top - 0.15) + 0.02
        rim = radius(angle, top) + 0.035
        flap = max(radius(angle, bottom) + 0.07, rim + 0.05)
        profile = (
            (inner, top - 0.15),
            (rim, top),
            (rim + 0.02, top + 0.005),
            ((rim + flap) / 2 + 0.02, (top + bottom) / 2),
            (flap, bottom),
        )
        rows.append(
            [[r * np.sin(angle), y, _NECK_CENTRE_Z + r * np.cos(angle)] for r, y in profile]
        )
    points = np.array(rows)
    count, across, _ = points.shape
    bound, weights = nearest_weights(points.reshape(-1, 3), v, 6)
    attributes = np.zeros((count * across, 4))
    attributes[:, 0] = np.tile(np.linspace(0, 1, across), count)
    attributes[:, 1] = np.repeat(angles / np.pi, across)
    first = b.add(
        points.reshape(-1, 3),
        grid_triangles(count, across),
        COLLAR,
        neck[bound],
        weights,
        attributes,
    )
    return np.array([first, b.count])
