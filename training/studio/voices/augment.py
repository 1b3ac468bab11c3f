"""Augmentation of speech on the training device: rooms, noise, music, tones, channels, levels.

An eighth of what the encoder hears is not speech at all (`silence_share`): noise, hum, tones, music
and breath over silence, labelled as silence, so that none of them opens the mouth.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import torch
import torch.nn.functional as F
from torch import Tensor

SAMPLE_RATE_HZ = 16000
_TARGET_RMS = 0.07
_BACKGROUND_RMS = 0.05  # what noises are measured against when there is no speech


def _unit_rms(x: Tensor) -> Tensor:
    return x / (x.pow(2).mean(-1, keepdim=True) + 1e-9).sqrt()


def _decibels(value: Tensor) -> Tensor:
    return torch.pow(torch.full_like(value, 10.0), value / 20)


class Augmenter:
    """Seeded by torch's global generator. `strength` 0..1 scales how often effects are used."""

    def __init__(self, samples: int, device: torch.device, strength: float = 0.8) -> None:
        self._samples, self._device, self._strength = samples, device, strength
        self._hertz = torch.fft.rfftfreq(samples, 1 / SAMPLE_RATE_HZ).to(device)
        self._time = torch.arange(samples, device=device)[None] / SAMPLE_RATE_HZ
        self._window = torch.hann_window(512, device=device)

    def __call__(self, speech: Tensor, silence_share: float) -> tuple[Tensor, Tensor]:
        """Speech [B, samples] to the augmented sound and a mask [B] of items made non-speech."""
        batch = len(speech)
        silent = self._random(batch) < silence_share
        clean = speech * (~silent)[:, None]
        rms = (clean.pow(2).mean(1, keepdim=True) + 1e-7).sqrt()
        rms = torch.where(silent[:, None], torch.full_like(rms, _BACKGROUND_RMS), rms)
        x = self._equalise(self._reverberate(clean))
        x = x + self._noise(rms, silent) + self._babble(clean, rms)
        x = self._some(x, 5, lambda y, rows: y + self._music(len(y), rms[rows]))
        x = self._some(x, 5, lambda y, rows: y + self._hum(len(y), rms[rows], silent[rows]))
        x = self._some(x, 3, lambda y, rows: y + self._tones(len(y), rms[rows], silent[rows]))
        x = self._limit_band(x)
        x = self._some(x, 6, lambda y, rows: self._spectral_holes(y))
        return self._record(x, rms), silent

    def _random(self, *shape: int) -> Tensor:
        return torch.rand(*shape, device=self._device)

    def _chance(self, batch: int, probability: float) -> Tensor:
        return self._random(batch, 1) < probability * self._strength

    def _some(self, x: Tensor, every: int, change: Callable[[Tensor, Tensor], Tensor]) -> Tensor:
        """Applies `change` to one in `every` items."""
        rows = torch.randperm(len(x), device=self._device)[: max(1, len(x) // every)]
        return x.index_copy(0, rows, change(x[rows], rows).to(x.dtype))

    def _reverberate(self, x: Tensor) -> Tensor:
        """A direct path and an exponential noise tail of 80 to 680 ms."""
        batch, length = len(x), 8000
        at = torch.arange(length, device=self._device)[None] / SAMPLE_RATE_HZ
        decay_s = 0.08 + self._random(batch, 1) ** 2 * 0.6
        tail = torch.randn(batch, length, device=self._device) * torch.exp(-6.9 * at / decay_s)
        tail = tail * (at > 0.0015)
        tail = tail / (tail.pow(2).sum(1, keepdim=True) + 1e-9).sqrt()
        response = tail * (0.15 + 0.7 * self._random(batch, 1))
        response[:, 0] = 1
        total = self._samples + length
        wet = torch.fft.irfft(torch.fft.rfft(x, total) * torch.fft.rfft(response, total), total)
        return torch.where(self._chance(batch, 0.4), wet[:, : self._samples], x)

    def _random_curve(self, batch: int, points: int, decibels: float) -> Tensor:
        """A gain over frequency [B, F], interpolated on a logarithmic axis."""
        corners = (self._random(batch, points) * 2 - 1) * decibels
        octaves = torch.log2(self._hertz.clamp(60) / 60) / math.log2(8000 / 60)
        position = octaves * (points - 1)
        left = position.floor().long().clamp(0, points - 2)
        weight = position - left
        return _decibels(corners[:, left] * (1 - weight) + corners[:, left + 1] * weight)

    def _equalise(self, x: Tensor) -> Tensor:
        batch = len(x)
        spectrum = torch.fft.rfft(x)
        flat = torch.ones(1, 1, device=self._device)
        curve = torch.where(self._chance(batch, 0.75), self._random_curve(batch, 9, 12), flat)
        tilt = (self._random(batch, 1) * 2 - 1) * 6 * (self._random(batch, 1) < 0.5)
        tilt = _decibels(tilt * torch.log2(self._hertz.clamp(100) / 1000))
        return torch.fft.irfft(spectrum * curve * tilt, self._samples)

    def _noise(self, rms: Tensor, silent: Tensor) -> Tensor:
        """Coloured noise, some of it coming and going, at 7 to 47 dB below the speech."""
        batch = len(rms)
        white = torch.fft.rfft(torch.randn(batch, self._samples, device=self._device))
        colour = torch.pow(self._hertz.clamp(40)[None] / 1000, -self._random(batch, 1) * 1.3)
        shaped = torch.fft.irfft(white * colour * self._random_curve(batch, 7, 8), self._samples)
        swell = self._random(batch, self._samples // 4000 + 1)
        swell = torch.repeat_interleave(swell, 4000, 1)[:, : self._samples]
        shaped = torch.where(self._random(batch, 1) < 0.4, shaped * swell, shaped)
        on = self._chance(batch, 0.65) | (silent[:, None] & (self._random(batch, 1) < 0.7))
        return _unit_rms(shaped) * rms * _decibels(-(7 + self._random(batch, 1) * 40)) * on

    def _babble(self, clean: Tensor, rms: Tensor) -> Tensor:
        """Three other voices, one of them backwards."""
        batch = len(clean)
        others = clean.roll(1, 0) + clean.roll(7, 0).flip(1) + clean.roll(13, 0)
        level = _decibels(-(12 + self._random(batch, 1) * 18))
        return _unit_rms(others) * rms * level * self._chance(batch, 0.12)

    def _music(self, batch: int, rms: Tensor) -> Tensor:
        """Decaying chords of five notes, 0.4 s each."""
        note_samples = 6400
        notes = self._samples // note_samples + 1
        position = torch.arange(self._samples, device=self._device)[None] % note_samples
        mixed = torch.zeros(batch, self._samples, device=self._device)
        for _ in range(5):
            pitch = torch.randint(0, 36, (batch, notes), device=self._device)
            hertz = torch.repeat_interleave(110 * 2 ** (pitch / 12), note_samples, 1)
            phase = torch.cumsum(hertz[:, : self._samples], 1) / SAMPLE_RATE_HZ * 2 * math.pi
            decay = torch.exp(-position / SAMPLE_RATE_HZ * self._random(batch, 1) * 6)
            partials = ((1, 1.0), (2, 0.5), (3, 0.3), (4, 0.2))
            tone = sum((torch.sin(n * phase) * a for n, a in partials), torch.zeros_like(phase))
            mixed = mixed + tone * decay * self._random(batch, 1)
        level = _decibels(-(4 + self._random(batch, 1) * 24)) * self._chance(batch, 1.0)
        return _unit_rms(mixed) * rms * level

    def _hum(self, batch: int, rms: Tensor, silent: Tensor) -> Tensor:
        """Mains hum around 50 and 60 Hz with its harmonics."""
        hertz = 44 + self._random(batch, 1) * 22
        hum = torch.zeros(batch, self._samples, device=self._device)
        for harmonic in (1, 2, 3, 4, 6):
            phase = 2 * math.pi * (hertz * harmonic * self._time + self._random(batch, 1))
            hum = hum + torch.sin(phase) * self._random(batch, 1) / harmonic
        on = (self._random(batch, 1) < 0.35) | (silent[:, None] & (self._random(batch, 1) < 0.5))
        return _unit_rms(hum) * rms * _decibels(-(2 + self._random(batch, 1) * 30)) * on

    def _tones(self, batch: int, rms: Tensor, silent: Tensor) -> Tensor:
        """Steady tones, beeps and dialling of 67 to 4400 Hz, mostly over silence."""
        tone = torch.zeros(batch, self._samples, device=self._device)
        for _ in range(3):
            hertz = torch.exp(self._random(batch, 1) * 4.2 + 4.2)
            used = self._random(batch, 1) < 0.6
            tone = tone + torch.sin(2 * math.pi * hertz * self._time) * used
        beat = int(torch.randint(600, 4800, ()))  # samples; a dialled digit has about 1000
        gate = (self._random(batch, self._samples // beat + 1) < 0.6).float()
        gate = torch.repeat_interleave(gate, beat, 1)[:, : self._samples]
        tone = torch.where(self._random(batch, 1) < 0.7, tone * gate, tone)
        on = (silent[:, None] & (self._random(batch, 1) < 0.7)) | (self._random(batch, 1) < 0.05)
        return tone * rms * _decibels(-self._random(batch, 1) * 24) * on

    def _limit_band(self, x: Tensor) -> Tensor:
        """Telephone and cheap-microphone bands."""
        batch = len(x)
        kind = self._random(batch, 1)
        upper = torch.full_like(kind, 9000)
        wide = 4000 + self._random(batch, 1) * 3500
        upper = torch.where(kind < 0.45 * self._strength, wide, upper)
        narrow = 3300 + self._random(batch, 1) * 600
        upper = torch.where(kind < 0.25 * self._strength, narrow, upper)
        lower = 60 + self._random(batch, 1) * 280
        lower = torch.where(self._chance(batch, 0.5), lower, torch.ones_like(lower))
        low_pass = torch.sigmoid((upper - self._hertz) / 60)
        high_pass = torch.sigmoid((self._hertz - lower) / (0.12 * lower + 5))
        return torch.fft.irfft(torch.fft.rfft(x) * low_pass * high_pass, self._samples)

    def _spectral_holes(self, x: Tensor) -> Tensor:
        """What low-rate codecs leave out: bins far below their loudest neighbour."""
        spectrum = torch.stft(x, 512, 128, window=self._window, return_complex=True)
        size = spectrum.abs()
        flat = size.transpose(1, 2).reshape(-1, 1, size.shape[1])
        loudest = F.max_pool1d(flat, 31, 1, 15).reshape(len(x), -1, size.shape[1]).transpose(1, 2)
        floor = loudest * _decibels(-(12 + self._random(len(x), 1, 1) * 25))
        return torch.istft(
            spectrum * (size > floor), 512, 128, window=self._window, length=self._samples
        )

    def _record(self, x: Tensor, rms: Tensor) -> Tensor:
        """Level of -26 to +8 dB around normal speech, rarely clipped; mu-law; a little hiss."""
        batch = len(x)
        peak = x.abs().amax(1, keepdim=True).clamp(1e-4)
        gain = _decibels(self._random(batch, 1) * 34 - 26) * _TARGET_RMS / rms
        headroom = torch.where(self._random(batch, 1) < 0.1, 2.0, 0.98) / peak
        x = (x * torch.minimum(gain, headroom)).clamp(-1, 1)
        coded = torch.sign(x) * torch.log1p(255 * x.abs()) / math.log1p(255)
        coded = (coded * 127).round() / 127
        coded = torch.sign(coded) * torch.expm1(coded.abs() * math.log1p(255)) / 255
        x = torch.where(self._chance(batch, 0.15), coded, x)
        return x + torch.randn_like(x) * _decibels(-(70 + self._random(batch, 1) * 40))


def add_breaths(x: Tensor, speech: Tensor, past_samples: int, frame_samples: int) -> Tensor:
    """Breath-like noise in pauses (`speech` [B, N] per frame) and a slow drift of the level."""
    batch, samples = x.shape
    device = x.device
    pause = 1 - F.max_pool1d(speech[:, None], 3, 1, 1)[:, 0]
    mask = torch.zeros_like(x)
    spoken = slice(past_samples, past_samples + speech.shape[1] * frame_samples)
    mask[:, spoken] = torch.repeat_interleave(pause, frame_samples, 1)
    box = torch.ones(1, 1, 321, device=device) / 321
    mask = F.conv1d(mask[:, None], box, padding=160)[:, 0]
    hertz = torch.fft.rfftfreq(samples, 1 / SAMPLE_RATE_HZ).to(device)[None]
    centre = 600 + torch.rand(batch, 1, device=device) * 2500
    width = 0.4 + torch.rand(batch, 1, device=device) * 0.6
    band = torch.exp(-0.5 * (torch.log(hertz.clamp(20) / centre) / width) ** 2)
    noise = torch.fft.rfft(torch.randn(batch, samples, device=device)) * band
    noise = _unit_rms(torch.fft.irfft(noise, samples))
    bumps = torch.rand(batch, 1, samples // 5000 + 2, device=device)
    bumps = bumps * (torch.rand_like(bumps) < 0.6)
    swell = F.interpolate(bumps, samples, mode="linear")[:, 0]
    level = _TARGET_RMS * _decibels(-(6 + torch.rand(batch, 1, device=device) * 26))
    x = x + noise * swell * mask * level * (torch.rand(batch, 1, device=device) < 0.35)
    knots = (torch.rand(batch, 1, samples // 9000 + 2, device=device) * 2 - 1) * 8
    drift = _decibels(F.interpolate(knots, samples, mode="linear")[:, 0])
    return x * torch.where(torch.rand(batch, 1, device=device) < 0.4, drift, torch.ones_like(drift))
