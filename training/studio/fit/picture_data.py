"""Rendered pairs of pictures: people, their source pictures and a pool of driving pictures."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from studio.faces.keypoints import Keypoints
from studio.faces.maths import transform_keypoints
from studio.faces.random_motion import random_body, random_motion
from studio.faces.render import FLOW_PX, Picture, Renderer, View, neutral_motion

_RENDER_BATCH = 8
_LIP, _INSIDE = 0, 1  # attribute columns of skin


@dataclass(frozen=True)
class Sources:
    """One picture per row, with the person, motion and framing that it shows."""

    person: Tensor
    motion: Tensor
    body: Tensor
    image: Tensor  # u8
    points: Tensor
    depth: Tensor  # at half of the crop's resolution


@dataclass(frozen=True)
class Drives:
    """Driving pictures of sources: flow to the source, visibility, centres of mouth and eyes."""

    source: Tensor
    motion: Tensor
    image: Tensor  # u8
    flow: Tensor
    visible: Tensor
    centres: Tensor


class PictureData:
    """The first people are `presenters`, framed as they ship; the last are `held_out`."""

    def __init__(
        self,
        renderer: Renderer,
        keypoints: Keypoints,
        presenters: int,
        held_out: int,
        view: View | None = None,
        sources_each: int = 2,
        presenter_share: float = 0.4,
    ) -> None:
        self.renderer, self.device = renderer, renderer.model.device
        self.view = view or View()
        self.presenters, self.held_out = presenters, held_out
        self.basis = torch.from_numpy(keypoints.basis).to(self.device)
        vertices = torch.from_numpy(keypoints.vertices).to(self.device)
        everyone = torch.arange(len(renderer.people.identities), device=self.device)
        self.canonical = renderer.keypoints(everyone, vertices)
        self._presenter_share = presenter_share
        attributes = renderer.model.attributes[: renderer.model.body]
        self._lips = torch.where((attributes[:, _LIP] > 0.6) & (attributes[:, _INSIDE] < 0.4))[0]
        self.sources = self._make_sources(everyone, sources_each)
        self.training_sources = len(self.sources.person) - held_out

    def _make_sources(self, everyone: Tensor, each: int) -> Sources:
        presenters = everyone[: self.presenters]
        rest, framing = neutral_motion(len(presenters), self.device)
        others = everyone[self.presenters : len(everyone) - self.held_out].repeat(each)
        held = everyone[len(everyone) - self.held_out :]
        body = [framing, self.frame(others), self.frame(held)]
        motion = [rest, random_motion(body[1], 0.6), random_motion(body[2], 0.6)]
        motion[2][:, 7:] *= 0.1
        motion[2][:, 1:4] *= 0.3
        person = torch.cat([presenters, others, held])
        motions, bodies = torch.cat(motion), torch.cat(body)
        pictures = [
            self.renderer.render(person[rows], motions[rows], bodies[rows], self.view)
            for rows in torch.arange(len(person), device=self.device).split(_RENDER_BATCH)
        ]
        half = 2 * self.view.samples // 2
        return Sources(
            person,
            motions,
            bodies,
            torch.cat([_to_bytes(p.image) for p in pictures]),
            torch.cat([p.points for p in pictures]),
            torch.cat([p.depth[:, ::half, ::half].half() for p in pictures]),
        )

    def frame(self, person: Tensor) -> Tensor:
        return random_body(len(person), self.device, person < self.presenters)

    def keypoints(self, source: Tensor, motion: Tensor) -> tuple[Tensor, Tensor]:
        """Of source pictures and of the same people moved by `motion`."""
        canonical = self.canonical[self.sources.person[source]]
        return (
            transform_keypoints(canonical, self.sources.motion[source], self.basis),
            transform_keypoints(canonical, motion, self.basis),
        )

    def drive(self, source: Tensor, motion: Tensor) -> Drives:
        """Renders sources' people in `motion`."""
        s = self.sources
        parts = []
        for rows in torch.arange(len(source), device=self.device).split(_RENDER_BATCH):
            at = source[rows]
            seen = Picture(s.image[at], s.points[at], s.depth[at].float())
            parts.append(
                self.renderer.render(s.person[at], motion[rows], s.body[at], self.view, seen)
            )
        points = torch.cat([p.points for p in parts])
        flows = [p.flow for p in parts if p.flow is not None]
        visible = [p.visible for p in parts if p.visible is not None]
        return Drives(
            source,
            motion,
            torch.cat([_to_bytes(p.image) for p in parts]),
            torch.cat(flows).half(),
            torch.cat(visible).to(torch.uint8),
            self._centres(points),
        )

    def random_drives(self, count: int) -> Drives:
        own = torch.rand(count, device=self.device) < self._presenter_share
        first = torch.randint(0, max(1, self.presenters), (count,), device=self.device)
        low = min(self.presenters, self.training_sources - 1)
        other = torch.randint(low, self.training_sources, (count,), device=self.device)
        source = torch.where(own, first, other)
        return self.drive(source, random_motion(self.sources.body[source]))

    def _centres(self, points: Tensor) -> Tensor:
        """Of the mouth and both eyes [B, 3, 2] in crop units."""
        starts = [int(s) for s in self.renderer.model.mesh.eye_starts]
        mouth = points[:, self._lips, :2].mean(1)
        return torch.stack([mouth, *(points[:, s, :2] for s in starts)], 1)


class Pool:
    """A ring of rendered driving pictures that training draws from."""

    def __init__(self, capacity: int, size: int, device: torch.device) -> None:
        def empty(*shape: int, kind: torch.dtype) -> Tensor:
            return torch.zeros(capacity, *shape, dtype=kind, device=device)

        self._drives = Drives(
            empty(kind=torch.int64),
            empty(59, kind=torch.float32),
            empty(3, size, size, kind=torch.uint8),
            empty(2, FLOW_PX, FLOW_PX, kind=torch.float16),
            empty(1, FLOW_PX, FLOW_PX, kind=torch.uint8),
            empty(3, 2, kind=torch.float32),
        )
        self._capacity, self._next, self.filled = capacity, 0, 0

    def push(self, drives: Drives) -> None:
        count = len(drives.source)
        at = (torch.arange(count, device=drives.source.device) + self._next) % self._capacity
        for name, kept in vars(self._drives).items():
            kept[at] = getattr(drives, name)
        self._next = (self._next + count) % self._capacity
        self.filled = min(self._capacity, self.filled + count)

    def pick(self, count: int) -> Drives:
        rows = torch.randint(0, self.filled, (count,), device=self._drives.source.device)
        return Drives(**{name: kept[rows] for name, kept in vars(self._drives).items()})


def _to_bytes(image: Tensor) -> Tensor:
    return (image * 255 + 0.5).to(torch.uint8)
