"""The speech corpus on the training device, cut into batches at any speed."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from studio.models.audio_encoder import FRAME_SAMPLES, PAST_FRAMES, SAMPLE_RATE_HZ, context_samples
from studio.voices.corpus import Labels, Session
from studio.voices.lips import LABEL_RATE_HZ

_SOUND_MARGIN = 16000  # silence around a session, in samples
_LABEL_MARGIN = 100


@dataclass(frozen=True)
class SpeechBatch:
    """Samples [B, S] and labels at 25 frames a second: lips, phones, prosody [B, N, ...]."""

    samples: Tensor
    lips: Tensor
    phones: Tensor
    prosody: Tensor


class SpeechData:
    """Sessions end to end with silence between them."""

    def __init__(self, sessions: list[Session], labels: list[Labels], device: torch.device) -> None:
        self.device = device
        self.sessions = sessions
        self.seconds = np.array([s.seconds for s in sessions])
        self.training = [i for i, s in enumerate(sessions) if not s.held_out]
        self.held_out = [i for i, s in enumerate(sessions) if s.held_out]

        def joined(parts: list[np.ndarray], margin: int) -> tuple[Tensor, Tensor]:
            starts = np.cumsum([0] + [len(p) + 2 * margin for p in parts])
            whole = np.zeros((starts[-1], *parts[0].shape[1:]), parts[0].dtype)
            for part, start in zip(parts, starts, strict=False):
                whole[start + margin : start + margin + len(part)] = part
            return torch.from_numpy(whole).to(device), torch.from_numpy(starts).to(device)

        sounds = [(s.samples * 32767).astype(np.int16) for s in sessions]
        self._sound, self._sound_at = joined(sounds, _SOUND_MARGIN)
        self._lips, self._label_at = joined([x.lips for x in labels], _LABEL_MARGIN)
        self._phones, _ = joined([x.phones for x in labels], _LABEL_MARGIN)
        self._prosody, _ = joined([x.prosody for x in labels], _LABEL_MARGIN)

    def random_batch(self, size: int, frames: int, rng: np.random.Generator) -> SpeechBatch:
        """Training sessions by length, +-22 % speed with slow wobble (which shifts voices too)."""
        weights = self.seconds[self.training] / self.seconds[self.training].sum()
        chosen = rng.choice(self.training, size, p=weights)
        ids = torch.from_numpy(chosen).to(self.device)
        speed = torch.from_numpy(np.exp(rng.uniform(-0.22, 0.22, size))).to(self.device)
        room = np.maximum(self.seconds[chosen] - frames * 0.04 * 1.2, 0.1)
        starts = torch.from_numpy(rng.random(size) * room).to(self.device)
        return self.cut(ids, starts, speed, frames, 0.28)

    def cut(
        self, ids: Tensor, starts: Tensor, speed: Tensor, frames: int, wobble: float = 0.0
    ) -> SpeechBatch:
        """`frames` frames from `starts` (s, float64) of each session at `speed`."""
        batch = len(ids)
        rate = 0.5 + 3.5 * torch.rand(batch, 1, device=self.device).double()
        depth = wobble * torch.rand(batch, 1, device=self.device).double()
        phase = 2 * math.pi * torch.rand(batch, 1, device=self.device).double()

        def played(seconds: Tensor) -> Tensor:
            if wobble > 0:
                swing = torch.sin(2 * math.pi * rate * seconds + phase)
                seconds = seconds + depth / (2 * math.pi * rate) * swing
            return starts[:, None] + speed[:, None] * seconds

        count = torch.arange(context_samples(frames), device=self.device)[None].double()
        at = played((count - PAST_FRAMES * FRAME_SAMPLES) / SAMPLE_RATE_HZ)
        position = self._sound_at[ids][:, None] + _SOUND_MARGIN + at * SAMPLE_RATE_HZ
        low, high = self._sound_at[ids][:, None] + 2.0, self._sound_at[ids + 1][:, None] - 4.0
        samples = _interpolate(self._sound, torch.minimum(torch.maximum(position, low), high))
        middle = (torch.arange(frames, device=self.device)[None].double() + 0.5) * 0.04
        row = (played(middle) * LABEL_RATE_HZ).round().long()
        row = row + self._label_at[ids][:, None] + _LABEL_MARGIN
        row = torch.minimum(
            torch.maximum(row, self._label_at[ids][:, None]), self._label_at[ids + 1][:, None] - 1
        )
        return SpeechBatch(samples.float(), self._lips[row], self._phones[row], self._prosody[row])


def _interpolate(sound: Tensor, position: Tensor) -> Tensor:
    """Catmull-Rom interpolation of int16 samples, scaled to -1..1."""
    left = position.floor()
    w = (position - left).float()
    i = left.long().clamp(1, len(sound) - 3)
    a, b, c, d = (sound[i + k].float() for k in (-1, 0, 1, 2))
    cubic = b + 0.5 * w * (c - a + w * (2 * a - 5 * b + 4 * c - d + w * (3 * (b - c) + d - a)))
    return cubic / 32768
