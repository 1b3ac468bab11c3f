"""Rasteriser and identities; the whole renderer is run by `make pack-smoke`."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch")

from studio.faces import identity  # noqa: E402
from studio.faces.maths import rotation, transform_keypoints  # noqa: E402
from studio.faces.people import Blink, Model  # noqa: E402
from studio.faces.raster import rasterise  # noqa: E402

NAMES = (
    "caucasian-female-young",
    "african-male-old",
    "universal-female-young-averagemuscle-averageweight",
    "nose-width-incr",
    "nose-width-decr",
    "head-oval",
    "mouth-angles-up",
    "asym-nose-1-l",
)


def test_nearer_triangle_wins_and_pixels_are_sampled_at_their_centres() -> None:
    points = torch.tensor([[[0, 0, 2], [8, 0, 2], [0, 8, 2], [0, 0, 1], [2, 0, 1], [0, 2, 1.0]]])
    numbers, depth = rasterise(points, torch.tensor([[0, 1, 2], [3, 4, 5]]), 8, 8)
    inside = [(x, y) for y in range(8) for x in range(8) if x + y + 1 <= 8]
    assert {(x, y) for y in range(8) for x in range(8) if numbers[0, y, x] > 0} == set(inside)
    near = {(x, y) for x, y in inside if numbers[0, y, x] == 2}
    assert near == {(0, 0), (1, 0), (0, 1)}
    assert depth[0, 0, 0] == pytest.approx(1)
    assert depth[0, 3, 3] == pytest.approx(2)


def test_batches_and_sizes_of_triangles_do_not_mix() -> None:
    torch.manual_seed(0)
    points = torch.rand(2, 60, 3) * torch.tensor([40.0, 30.0, 3.0]) + 0.5
    triangles = torch.randint(0, 60, (50, 3))
    both = rasterise(points, triangles, 40, 30)
    for item in range(2):
        alone = rasterise(points[item : item + 1], triangles, 40, 30)
        assert torch.equal(both[0][item], alone[0][0])
        assert torch.equal(both[1][item], alone[1][0])


def test_identities_repeat_and_differ() -> None:
    first, again, other = (identity.draw(NAMES, seed) for seed in (1, 1, 2))
    assert first.shape == again.shape
    assert (first.row() == again.row()).all()
    assert (first.row() != other.row()).any()
    assert set(first.shape) <= set(NAMES)
    assert set(identity.presenters(NAMES)) == {"anna", "marcus", "mei"}


class TwoEyes(Model):
    """An upper lid over a lower one, and a cheek, per eye."""

    def __init__(self) -> None:
        one = torch.tensor([[0.0, 1.0, 0.0], [0.0, 0.0, 0.0], [0.0, -2.0, 0.0]])
        self.rest = torch.cat([one, one + torch.tensor([5.0, 0.0, 0.0])])
        self.body = len(self.rest)

    def shape(self, name: str) -> torch.Tensor:
        moved = torch.zeros(6, 3)
        first = 0 if name == "eyeBlinkLeft" else 3
        moved[first, 1], moved[first + 1, 1] = -0.9, 0.1
        return moved


def test_large_and_small_eyes_shut_as_far_as_the_base_meshs() -> None:
    eyes = TwoEyes()
    blink = Blink(eyes)
    assert blink.gains(eyes.rest).tolist() == pytest.approx([1, 1])
    person = eyes.rest.clone()
    person[0, 1] = 1.4
    person[4, 1] = 0.1
    gains = blink.gains(person)
    assert gains.tolist() == pytest.approx([1.4, 0.9])
    shut = person + gains[0] * eyes.shape("eyeBlinkLeft")
    assert float(shut[0, 1] - shut[1, 1]) == pytest.approx(0, abs=1e-6)


def test_keypoints_follow_scale_turn_expression_and_shift() -> None:
    nose = torch.tensor([[[0.0, 0.0, -1.0]]])
    basis = torch.zeros(52, 1, 3)
    basis[3, 0, 1] = 0.25
    motion = torch.zeros(1, 59)
    motion[0, 0], motion[0, 2], motion[0, 4], motion[0, 7 + 3] = 2.0, 90.0, 0.5, 1.0
    turn = rotation(*(torch.tensor([v]) for v in (0.0, 90.0, 0.0)))[0]
    assert torch.allclose(turn @ turn.T, torch.eye(3), atol=1e-6)
    moved = transform_keypoints(nose, motion, basis)[0, 0]
    assert moved.tolist() == pytest.approx([-1.5, 0.5, 0.0], abs=1e-5)
