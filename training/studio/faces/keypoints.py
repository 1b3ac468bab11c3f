"""Which vertices are keypoints, and how far each blendshape moves them.

Chosen greedily: the next keypoint is the vertex whose movement over the 52 shapes is explained
worst by those already chosen, so that the basis can be inverted.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from studio.faces.geometry import TONGUE, FaceMesh
from studio.faces.render import HALF_EXTENT
from studio.voices.arkit import ARKIT

KEYPOINTS = 48
_ANCHORS = ((0, 7.0, 1.75), (0, 7.85, 1.35), (0.62, 7.2, 0.9), (-0.62, 7.2, 0.9))
_LEAST_DISTANCE = 0.06
_GAZE_DEG = {"Out": 32, "In": 32, "Up": 25, "Down": 28}


@dataclass(frozen=True)
class Keypoints:
    """Vertices [48] (four rigid anchors first, pupils and tongue tip last), basis [52, 48, 3]."""

    vertices: npt.NDArray[np.int64]
    basis: npt.NDArray[np.float32]


def choose(mesh: FaceMesh) -> Keypoints:
    on_face = _greedy(mesh, KEYPOINTS - 3)
    tongue = np.unique(mesh.triangles[mesh.materials == TONGUE])
    tip = tongue[np.argmax(mesh.vertices[tongue, 2])]
    vertices = np.concatenate([on_face, mesh.eye_starts, [tip]]).astype(np.int64)
    basis = mesh.shapes[:, vertices].astype(np.float64)
    for eye, side in enumerate(("Left", "Right")):
        at, outward = KEYPOINTS - 3 + eye, 1 if eye == 0 else -1
        basis[:, at] = 0
        reach = {way: float(mesh.eye_radii[eye]) * np.deg2rad(d) for way, d in _GAZE_DEG.items()}
        for way, axis, sign in (
            ("Out", 0, outward),
            ("In", 0, -outward),
            ("Up", 1, 1),
            ("Down", 1, -1),
        ):
            basis[ARKIT.index(f"eyeLook{way}{side}"), at, axis] = sign * reach[way]
    scaled = basis / HALF_EXTENT * np.array([1, -1, -1.0])
    return Keypoints(vertices, scaled.astype(np.float32))


def _greedy(mesh: FaceMesh, count: int) -> npt.NDArray[np.int64]:
    at, attributes = mesh.vertices[: mesh.body_vertices], mesh.attributes[: mesh.body_vertices]
    on_face = (at[:, 1] > 6.15) & (at[:, 1] < 7.9) & (at[:, 2] > 0.75)
    on_face &= (attributes[:, 1] < 0.35) & (attributes[:, 3] < 0.3)
    candidates = np.flatnonzero(on_face)
    points = at[candidates].astype(np.float64)
    moves = mesh.shapes[:, candidates].astype(np.float64).transpose(1, 2, 0)
    counted = np.array([not n.startswith("eyeLook") and n != "tongueOut" for n in ARKIT])
    unexplained = moves * counted / (np.abs(moves).max((0, 1)) + 1e-6)
    chosen: list[int] = []

    def take(candidate: int) -> None:
        nonlocal unexplained
        chosen.append(candidate)
        for axis in range(3):
            direction = unexplained[candidate, axis].copy()
            length = np.linalg.norm(direction)
            if length >= 1e-4:
                direction /= length
                unexplained = unexplained - (unexplained @ direction)[..., None] * direction

    for anchor in _ANCHORS:
        take(int(np.argmin(((points - anchor) ** 2).sum(1))))
    while len(chosen) < count:
        squared = ((points[:, None] - points[chosen][None]) ** 2).sum(-1).min(1)
        score = (unexplained**2).sum((1, 2)) * (squared > _LEAST_DISTANCE**2) + 1e-5 * squared
        take(int(np.argmax(score)))
    return candidates[chosen]
