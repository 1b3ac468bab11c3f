"""Audio encoder: samples to one feature row per video frame.

Every convolution is valid (unpadded), so cutting the sound into chunks changes nothing: frame i
reads the samples [640 i - 9600, 640 i + 3200) however it is streamed.
"""

from __future__ import annotations

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from studio.voices.lips import LIPS
from studio.voices.phones import PHONES

SAMPLE_RATE_HZ = 16000
FRAME_SAMPLES = 640
PAST_FRAMES, PRESENT_FRAMES, FUTURE_FRAMES = 15, 5, 4

LIP_DIMS, PROSODY_DIMS, LATENT_DIMS = len(LIPS), 4, 60
FEATURE_DIMS = LIP_DIMS + PROSODY_DIMS + LATENT_DIMS

_MEL_BANDS = 64
_WINDOW, _HOP = 400, 160
_BINS = _WINDOW // 2 + 1
_LOWEST_HZ, _HIGHEST_HZ, _LAST_BIN_HZ = 60.0, 7600.0, 7990.0
_UNWARPED, _WARPED = 6, 58
WARPS = _UNWARPED + _WARPED
_WARP_SEED = 3


def context_samples(frames: int) -> int:
    """Samples that the encoder reads to yield `frames` rows."""
    return FRAME_SAMPLES * (PAST_FRAMES + frames + FUTURE_FRAMES)


def mel_filters(warp: np.ndarray | float = 1.0) -> Tensor:
    """Triangular filters [bins, bands], their corners scaled by `warp` (vocal-tract length)."""

    def to_mel(hertz: float) -> float:
        return float(2595 * np.log10(1 + hertz / 700))

    mels = np.linspace(to_mel(_LOWEST_HZ), to_mel(_HIGHEST_HZ), _MEL_BANDS + 2)
    corners = 700 * (10 ** (mels / 2595) - 1) * warp
    corners = np.minimum(np.maximum.accumulate(corners), _LAST_BIN_HZ)
    hertz = np.arange(_BINS) * SAMPLE_RATE_HZ / _WINDOW
    filters = np.zeros((_BINS, _MEL_BANDS), np.float32)
    for band in range(_MEL_BANDS):
        low, centre, high = corners[band : band + 3]
        low, high = min(low, centre - 20), max(high, centre + 20)  # a bin wide at least
        filters[:, band] = np.clip(
            np.minimum((hertz - low) / (centre - low), (high - hertz) / (high - centre)), 0, None
        )
        if filters[:, band].sum() < 1e-3:
            filters[np.argmin(np.abs(hertz - centre)), band] = 1
        filters[:, band] /= filters[:, band].sum()
    return torch.from_numpy(filters)


def _training_filters() -> Tensor:
    """Filter banks of WARPS vocal tracts, the first _UNWARPED of them plain."""
    rng = np.random.RandomState(_WARP_SEED)
    position = np.linspace(0, 1, _MEL_BANDS + 2)
    banks = [mel_filters()] * _UNWARPED
    for _ in range(_WARPED):
        overall = np.exp(rng.uniform(-0.16, 0.16))
        bends = np.interp(position, np.linspace(0, 1, 5), rng.uniform(-0.07, 0.07, 5))
        banks.append(mel_filters(overall * np.exp(bends)))
    return torch.stack(banks)


class LogMel(nn.Module):
    """Samples [B, S] to scaled log-mel energies [B, 64, T], 100 a second, as convolutions."""

    dft: Tensor
    filters: Tensor
    warped: Tensor

    def __init__(self) -> None:
        super().__init__()
        hann = np.hanning(_WINDOW + 1)[:-1]
        phase = 2 * np.pi * np.arange(_BINS)[:, None] * np.arange(_WINDOW) / _WINDOW
        dft = np.concatenate([np.cos(phase) * hann, -np.sin(phase) * hann])[:, None]
        self.register_buffer("dft", torch.tensor(dft, dtype=torch.float32), persistent=False)
        filters = mel_filters().t().contiguous()[:, :, None]
        self.register_buffer("filters", filters, persistent=False)
        self.register_buffer("warped", _training_filters(), persistent=False)

    def forward(self, samples: Tensor, warp: Tensor | None = None) -> Tensor:
        spectrum = F.conv1d(samples[:, None], self.dft, stride=_HOP)
        power = spectrum[:, :_BINS] ** 2 + spectrum[:, _BINS:] ** 2
        if warp is None:
            mel = F.conv1d(power, self.filters)
        else:
            mel = torch.einsum("bft,bfm->bmt", power, self.warped[warp])
        return (torch.log(mel + 1e-6) + 5.0) * 0.22


class _Block(nn.Module):
    """Residual block; causal ones read only the past."""

    def __init__(self, channels: int, dilation: int, causal: bool) -> None:
        super().__init__()
        self.c1 = nn.Conv1d(channels, channels, 3, dilation=dilation)
        self.b1 = nn.BatchNorm1d(channels)
        self.c2 = nn.Conv1d(channels, channels, 1)
        self.b2 = nn.BatchNorm1d(channels)
        self.before = 2 * dilation if causal else dilation
        self.after = 0 if causal else dilation
        nn.init.zeros_(self.b2.weight)

    def forward(self, x: Tensor) -> Tensor:
        y = self.b2(self.c2(F.silu(self.b1(self.c1(x)))))
        end = x.shape[2] - self.after
        return F.silu(x[:, :, self.before : end] + y)


class AudioEncoder(nn.Module):
    """Samples [B, context_samples(N)] to features [B, N, 80] and phone logits [B, N, 40].

    A feature row is 16 lip curves, 4 of prosody (speech, loudness, pitch, voicing) and 60 latents
    in -1..1 that the phone logits are read from.
    """

    mix_probability = 0.0  # of exchanging channel statistics between utterances while training

    def __init__(self, widths: tuple[int, int, int] = (160, 224, 288)) -> None:
        super().__init__()
        first, second, third = widths
        self.mel = LogMel()
        self.n0 = nn.BatchNorm1d(_MEL_BANDS)
        self.a = nn.Sequential(
            nn.Conv1d(_MEL_BANDS, first, 5),
            nn.BatchNorm1d(first),
            nn.SiLU(),
            nn.Conv1d(first, second, 4, stride=2),
            nn.BatchNorm1d(second),
            nn.SiLU(),
        )
        self.b = nn.Sequential(*[_Block(second, d, False) for d in (1, 2, 1, 2)])
        self.d = nn.Sequential(
            nn.Conv1d(second, third, 4, stride=2), nn.BatchNorm1d(third), nn.SiLU()
        )
        self.c = nn.Sequential(*[_Block(third, d, True) for d in (1, 2, 2)])
        self.lips = nn.Conv1d(third, LIP_DIMS, 1)
        self.prosody = nn.Conv1d(third, PROSODY_DIMS, 1)
        self.latent = nn.Conv1d(third, LATENT_DIMS, 1)
        self.phones = nn.Conv1d(LATENT_DIMS, len(PHONES), 1)
        self.lips_from_latent = nn.Conv1d(LATENT_DIMS, LIP_DIMS, 1)  # while training only

    def mix_styles(self, x: Tensor) -> Tensor:
        """MixStyle (Zhou et al. 2021): channel statistics of two utterances are mixed."""
        mean, std = x.mean(2, keepdim=True), x.std(2, keepdim=True) + 1e-4
        other = torch.randperm(len(x), device=x.device)
        own = 0.35 + 0.65 * torch.rand(len(x), 1, 1, device=x.device, dtype=x.dtype)
        chosen = torch.rand(len(x), 1, 1, device=x.device) < self.mix_probability
        own = torch.where(chosen, own, torch.ones_like(own))
        mixed_std = own * std + (1 - own) * std[other]
        return (x - mean) / std * mixed_std + own * mean + (1 - own) * mean[other]

    def trunk(self, mel: Tensor, kept: Tensor | None = None) -> Tensor:
        """`kept` [B, 64, 1] zeroes bands of the spectrum while training."""
        x = self.n0(mel)
        if kept is not None:
            x = x * kept
        x = self.a(x)
        if self.training and self.mix_probability > 0:
            x = self.mix_styles(x.float())
        out: Tensor = self.c(self.d(self.b(x)))
        return out

    def heads(self, x: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        """Lips, prosody, latents, phone logits; each [B, channels, N]."""
        latent = torch.tanh(self.latent(x))
        p = self.prosody(x)
        prosody = torch.cat(
            [torch.sigmoid(p[:, :1]), F.softplus(p[:, 1:2]), p[:, 2:3], torch.sigmoid(p[:, 3:4])], 1
        )
        return torch.sigmoid(self.lips(x)), prosody, latent, self.phones(latent)

    def forward(self, samples: Tensor) -> tuple[Tensor, Tensor]:
        lips, prosody, latent, phones = self.heads(self.trunk(self.mel(samples)))
        return torch.cat([lips, prosody, latent], 1).transpose(1, 2), phones.transpose(1, 2)
