"""Motion generator: a diffusion transformer over windows of 80 motion vectors."""

from __future__ import annotations

import math

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from studio.models.audio_encoder import FEATURE_DIMS
from studio.voices.arkit import BLENDSHAPE, EMOTIONS, MOTION_DIMS, POSE

WINDOW = 80
TIMESTEPS = 1000
COSINE_S = 0.008
CONDITION_DIMS = FEATURE_DIMS + len(EMOTIONS) + 2  # features, emotion, blink value, blink mask
DEFAULT_STEPS = (999, 930, 820, 550)
STEP_TABLES = {2: (999, 820), 4: DEFAULT_STEPS, 6: (980, 920, 840, 720, 540, 280)}

_TIME_FREQUENCIES = 64
_SLOW_SHAPES = (
    "browDownLeft browDownRight browInnerUp browOuterUpLeft browOuterUpRight cheekSquintLeft "
    "cheekSquintRight noseSneerLeft noseSneerRight mouthFrownLeft mouthFrownRight "
    "mouthDimpleLeft mouthDimpleRight"
).split()
SLOW_DIMS = list(range(len(POSE))) + [BLENDSHAPE[name] for name in _SLOW_SHAPES]
GAZE_DIMS = [
    BLENDSHAPE[f"eyeLook{way}{side}"]
    for way in ("Down", "In", "Out", "Up")
    for side in ("Left", "Right")
]


def noise_schedule() -> Tensor:
    """Cumulative alpha of the cosine schedule (Nichol and Dhariwal 2021, equation 17)."""
    t = torch.linspace(0, TIMESTEPS, TIMESTEPS + 1, dtype=torch.float64) / TIMESTEPS
    alpha = torch.cos((t + COSINE_S) / (1 + COSINE_S) * math.pi / 2) ** 2
    beta = (1 - alpha[1:] / alpha[:-1]).clamp(0, 0.999)
    return torch.cumprod(1 - beta, 0).float()


def spline_projection(
    knot_frames: int = 4, first_weight: float = 4.0, curvature: float = 0.02
) -> tuple[Tensor, Tensor]:
    """Least-squares cubic B-spline smoother of the frame before a window and the window.

    Returns matrices [80, 80] and [80, 1] that map the window and that frame to the smooth window.
    """
    count = WINDOW + 1
    time = np.arange(count) / knot_frames
    knots = math.ceil(WINDOW / knot_frames) + 3

    def cubic(x: np.ndarray) -> np.ndarray:
        near = 2 / 3 - x**2 + np.abs(x) ** 3 / 2
        far = (2 - np.abs(x)) ** 3 / 6
        return np.where(np.abs(x) < 1, near, np.where(np.abs(x) < 2, far, 0))

    basis = np.stack([cubic(time - (knot - 1)) for knot in range(knots)], axis=1)
    weights = np.ones(count)
    weights[0] = first_weight**2
    bend = np.diff(np.eye(knots), 2, axis=0)
    normal = (basis.T * weights) @ basis + curvature * bend.T @ bend
    smoother = torch.tensor(basis @ np.linalg.solve(normal, basis.T * weights), dtype=torch.float32)
    return smoother[1:, 1:].contiguous(), smoother[1:, :1].contiguous()


def _three_tap() -> Tensor:
    taps = np.zeros((WINDOW, WINDOW))
    for row in range(WINDOW):
        for offset, weight in ((-1, 0.25), (0, 0.5), (1, 0.25)):
            taps[row, min(WINDOW - 1, max(0, row + offset))] += weight
    return torch.tensor(taps, dtype=torch.float32)


class _Layer(nn.Module):
    """Attention, then a feed-forward part with a depthwise convolution; both modulated by time."""

    def __init__(self, width: int, heads: int, hidden: int) -> None:
        super().__init__()
        self.heads = heads
        self.n1 = nn.LayerNorm(width, elementwise_affine=False)
        self.n2 = nn.LayerNorm(width, elementwise_affine=False)
        self.qkv, self.o = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.f1, self.f2 = nn.Linear(width, hidden), nn.Linear(hidden, width)
        self.film = nn.Linear(width, 4 * width)
        self.dw = nn.Conv1d(width, width, 5, padding=2, groups=width)
        for part in (self.film, self.o, self.f2):
            nn.init.zeros_(part.weight)
        nn.init.zeros_(self.film.bias)

    def forward(self, x: Tensor, time: Tensor) -> Tensor:
        scale1, shift1, scale2, shift2 = self.film(time)[:, None].chunk(4, -1)
        batch, length, width = x.shape
        head = width // self.heads
        qkv = self.qkv(self.n1(x) * (1 + scale1) + shift1)
        q, k, v = qkv.view(batch, length, 3, self.heads, head).permute(2, 0, 3, 1, 4).unbind(0)
        attention = torch.softmax(q @ k.transpose(-1, -2) * (1 / math.sqrt(head)), -1)
        x = x + self.o((attention @ v).transpose(1, 2).reshape(batch, length, width))
        y = self.n2(x) * (1 + scale2) + shift2
        y = y + self.dw(y.transpose(1, 2)).transpose(1, 2)
        out: Tensor = x + self.f2(F.gelu(self.f1(y)))
        return out


class MotionGenerator(nn.Module):
    """Denoises x [B, 80, 59]; also reads the frame before the window and the condition rows.

    Pose, brows and other slow shapes pass a fixed spline smoother inside the graph: without it, few
    steps leave jitter in the head.
    """

    alpha: Tensor

    def __init__(
        self, width: int = 192, layers: int = 6, heads: int = 6, hidden: int = 640
    ) -> None:
        super().__init__()
        self.xin, self.cin = nn.Linear(MOTION_DIMS, width), nn.Linear(CONDITION_DIMS, width)
        self.cc = nn.Conv1d(width, width, 3, padding=1)
        self.fin = nn.Linear(MOTION_DIMS, width)
        self.pos = nn.Parameter(torch.randn(1, WINDOW + 1, width) * 0.02)
        self.t1, self.t2 = nn.Linear(2 * _TIME_FREQUENCIES, width), nn.Linear(width, width)
        self.layers = nn.ModuleList([_Layer(width, heads, hidden) for _ in range(layers)])
        self.no, self.out = nn.LayerNorm(width), nn.Linear(width, MOTION_DIMS)
        self.skip = nn.Linear(CONDITION_DIMS, MOTION_DIMS)
        nn.init.zeros_(self.out.weight)
        slow, gaze = torch.zeros(MOTION_DIMS), torch.zeros(MOTION_DIMS)
        slow[SLOW_DIMS], gaze[GAZE_DIMS] = 1, 1
        smoother, of_first = spline_projection()
        buffers = {
            "slow": slow,
            "gaze": gaze,
            "smoother": smoother,
            "of_first": of_first,
            "three_tap": _three_tap(),
            "alpha": noise_schedule(),
            "frequency": torch.exp(
                -math.log(10000.0) * torch.arange(_TIME_FREQUENCIES) / _TIME_FREQUENCIES
            ),
        }
        for name, value in buffers.items():
            self.register_buffer(name, value, persistent=False)

    def clean(self, x: Tensor, before: Tensor, condition: Tensor, timestep: Tensor) -> Tensor:
        """The estimate of the clean window."""
        phase = timestep.float()[:, None] * self.frequency[None]
        time = self.t2(F.silu(self.t1(torch.cat([phase.cos(), phase.sin()], -1))))
        rows = self.cin(condition)
        rows = rows + F.silu(self.cc(rows.transpose(1, 2)).transpose(1, 2))
        first = self.fin(before)[:, None]
        y = torch.cat([first + time[:, None], self.xin(x) + rows + first], 1) + self.pos
        modulation = F.silu(time)
        for layer in self.layers:
            y = layer(y, modulation)
        raw = (self.out(self.no(y[:, 1:])) + self.skip(condition)).float()
        smooth = self.smoother @ raw + self.of_first * before[:, None].float()
        gaze = self.three_tap @ raw
        return raw * (1 - self.slow - self.gaze) + self.slow * smooth + self.gaze * gaze

    def forward(
        self, x: Tensor, cond_frame: Tensor, cond: Tensor, time_cond: Tensor
    ) -> tuple[Tensor, Tensor]:
        """Predicted noise and clean window, as the pack's graph has them."""
        clean = self.clean(x, cond_frame, cond, time_cond)
        alpha = self.alpha[time_cond][:, None, None]
        return (x - alpha.sqrt() * clean) / (1 - alpha).sqrt(), clean


def sample(
    model: MotionGenerator,
    noise: Tensor,
    before: Tensor,
    condition: Tensor,
    steps: tuple[int, ...] = DEFAULT_STEPS,
) -> Tensor:
    """DDIM with eta 0 over the given timesteps."""
    x = noise
    for step, following in zip(steps, (*steps[1:], None), strict=True):
        at = torch.full((len(x),), step, device=x.device, dtype=torch.long)
        predicted, clean = model(x, before, condition, at)
        if following is None:
            return clean
        alpha = model.alpha[following]
        x = clean * alpha.sqrt() + (1 - alpha).sqrt() * predicted
    return x
