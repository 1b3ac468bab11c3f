"""Training of the motion generator on performances of the corpus and the encoder's features."""

from __future__ import annotations

from collections.abc import Iterable
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from studio.fit.progress import Average, Clock, Log, cosine_rate, load_checkpoint, save_checkpoint
from studio.fit.speech_data import SpeechData
from studio.models.audio_encoder import AudioEncoder, context_samples
from studio.models.motion_generator import (
    DEFAULT_STEPS,
    TIMESTEPS,
    WINDOW,
    MotionGenerator,
    sample,
)
from studio.voices.arkit import BLENDSHAPE, EMOTIONS, MOTION_DIMS, NEUTRAL, POSE, SCALE
from studio.voices.augment import Augmenter
from studio.voices.corpus import Labels
from studio.voices.performance import Prosody, mouth_aperture, perform

CHECKPOINT = "motion_generator.pt"
_JAW, _CLOSE = BLENDSHAPE["jawOpen"], BLENDSHAPE["mouthClose"]
_LIP_SHAPES = (
    "jawForward mouthFunnel mouthPucker mouthStretchLeft mouthStretchRight mouthRollLower "
    "mouthRollUpper mouthShrugLower mouthPressLeft mouthPressRight mouthLowerDownLeft "
    "mouthLowerDownRight mouthUpperUpLeft mouthUpperUpRight tongueOut"
).split()
_CLEAN_SHARE = 0.3  # of the takes whose sound is not augmented
_DEFAULT_STEP_SHARE = 0.45  # of the training steps at the timesteps that ship


@dataclass(frozen=True)
class MotionOptions:
    """`takes` performances of every session, each with its own emotion, speed and chance."""

    minutes: float
    takes: int = 3
    batch: int = 256
    peak_rate: float = 1e-3
    seed: int = 0
    workers: int = 1
    start_from: dict[str, Tensor] | None = None
    statistics: tuple[Tensor, Tensor] | None = None


@dataclass(frozen=True)
class _Take:
    session: int
    speed: float
    emotion: int
    seed: int


@dataclass(frozen=True)
class Statistics:
    """Motion = normalised x std + mean."""

    mean: Tensor
    std: Tensor


@dataclass(frozen=True)
class Performances:
    """All takes end to end, on the training device; `starts` has one more entry than takes."""

    motion: Tensor
    blinks: Tensor
    features: Tensor
    emotions: Tensor
    starts: Tensor
    training_takes: int
    statistics: Statistics

    @property
    def neutral(self) -> Tensor:
        rest = torch.zeros(MOTION_DIMS, device=self.motion.device)
        rest[SCALE] = 1
        return (rest - self.statistics.mean) / self.statistics.std


def _perform_take(
    work: tuple[_Take, Labels],
) -> tuple[np.ndarray, np.ndarray]:
    take, labels = work
    frames = int(len(labels.lips) / take.speed / 4) - 1
    rows = ((np.arange(frames) + 0.5) * 4 * take.speed).round().astype(int)
    rows = np.minimum(rows, len(labels.lips) - 1)
    speech, loudness, pitch = labels.prosody[rows, :3].astype(np.float64).T
    motion, blinks = perform(
        labels.lips[rows].astype(np.float64),
        Prosody(speech, loudness, pitch),
        take.emotion,
        np.random.default_rng(take.seed),
    )
    return motion.astype(np.float32), blinks.astype(np.float32)


def _plan_takes(data: SpeechData, options: MotionOptions) -> tuple[list[_Take], int]:
    rng = np.random.default_rng(options.seed)
    takes: list[_Take] = []

    def add(session: int, speed: float) -> None:
        neutral = rng.random() < 0.4
        emotion = NEUTRAL if neutral else int(rng.integers(len(EMOTIONS)))
        takes.append(_Take(session, speed, emotion, int(rng.integers(1 << 30))))

    for repeat in range(options.takes):
        for session in data.training:
            add(session, float(np.exp(rng.uniform(-0.17, 0.17))) if repeat else 1.0)
    training = len(takes)
    for session in data.held_out:
        add(session, 1.0)
    return takes, training


def make_performances(
    data: SpeechData, labels: list[Labels], encoder: AudioEncoder, options: MotionOptions
) -> Performances:
    """Performs every take and runs the encoder over its sound, augmented in most takes."""
    takes, training = _plan_takes(data, options)
    work = [(take, labels[take.session]) for take in takes]
    done: Iterable[tuple[np.ndarray, np.ndarray]]
    if options.workers > 1:
        with ProcessPoolExecutor(options.workers) as pool:
            done = list(pool.map(_perform_take, work, chunksize=4))
    else:
        done = [_perform_take(item) for item in work]
    motions, blinks = zip(*done, strict=True)
    device = data.device
    features = _features(data, encoder, takes, [len(m) for m in motions], training, options.seed)
    motion = torch.from_numpy(np.concatenate(motions)).to(device)
    starts = np.cumsum([0] + [len(m) for m in motions])
    statistics = _statistics(motion[: starts[training]], options.statistics)
    emotions = torch.zeros(len(takes), len(EMOTIONS), device=device)
    emotions[torch.arange(len(takes)), [t.emotion for t in takes]] = 1
    return Performances(
        (motion - statistics.mean) / statistics.std,
        torch.from_numpy(np.concatenate(blinks)).to(device),
        features,
        emotions,
        torch.from_numpy(starts).to(device),
        training,
        statistics,
    )


def _statistics(motion: Tensor, fixed: tuple[Tensor, Tensor] | None) -> Statistics:
    """Blendshapes keep their zero (rest is zero in normalised space too)."""
    if fixed is not None:
        return Statistics(fixed[0].to(motion.device), fixed[1].to(motion.device))
    mean, std = motion.mean(0), motion.std(0)
    mean[len(POSE) :] = 0
    return Statistics(mean, torch.where(std < 0.004, torch.ones_like(std), std))


@torch.no_grad()
def _features(
    data: SpeechData,
    encoder: AudioEncoder,
    takes: list[_Take],
    lengths: list[int],
    training: int,
    seed: int,
) -> Tensor:
    torch.manual_seed(seed)
    rng = np.random.default_rng(seed)
    rows: list[Tensor] = []
    for index, (take, frames) in enumerate(zip(takes, lengths, strict=True)):
        ids = torch.tensor([take.session], device=data.device)
        start = torch.zeros(1, device=data.device, dtype=torch.float64)
        sound = data.cut(ids, start, start + take.speed, frames).samples
        if index < training and rng.random() >= _CLEAN_SHARE:
            sound, _ = Augmenter(context_samples(frames), data.device, 0.55)(sound, 0.0)
        rows.append(encoder(sound)[0][0].half())
    return torch.cat(rows)


def _dim_weights(statistics: Statistics) -> Tensor:
    """Lips count more; dims that never move (std 1 by convention) hardly count."""
    weights = torch.ones(MOTION_DIMS, device=statistics.std.device)
    weights[[BLENDSHAPE[name] for name in _LIP_SHAPES]] = 1.5
    weights[_JAW], weights[_CLOSE] = 3.0, 2.0
    weights = weights * (statistics.std < 0.99).float() + 0.05
    weights[SCALE] = 0.5
    weights[POSE.index("tx") : POSE.index("tz") + 1] = 0.5
    return weights


def _windows(data: Performances, takes: Tensor, first: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Windows, the frames before them and their condition rows."""
    device = data.motion.device
    offsets = torch.arange(-1, WINDOW, device=device)
    rows = data.starts[takes][:, None] + (first[:, None] + offsets[None]).clamp(min=0)
    rows = rows.clamp(max=len(data.motion) - 1)
    window = data.motion[rows]
    before = torch.where((first == 0)[:, None], data.neutral[None], window[:, 0])
    rows = rows[:, 1:]
    followed = (torch.rand(len(takes), 1, device=device) < 0.5).float().expand(-1, WINDOW)
    condition = torch.cat(
        [
            data.features[rows].float(),
            data.emotions[takes][:, None].expand(-1, WINDOW, -1),
            (data.blinks[rows] * followed)[..., None],
            followed[..., None],
        ],
        -1,
    )
    return window[:, 1:], before, condition


def _random_windows(data: Performances, size: int) -> tuple[Tensor, Tensor, Tensor]:
    device = data.motion.device
    lengths = (data.starts[1:] - data.starts[:-1])[: data.training_takes]
    takes = torch.multinomial(lengths.float(), size, replacement=True)
    first = (torch.rand(size, device=device) * (lengths[takes] - WINDOW - 1).clamp(min=0)).long()
    first = torch.where(torch.rand(size, device=device) < 0.04, torch.zeros_like(first), first)
    return _windows(data, takes, first)


def train_motion(data: Performances, folder: Path, options: MotionOptions) -> MotionGenerator:
    """Trains, or goes on from the folder's checkpoint; returns the averaged generator."""
    device = data.motion.device
    torch.manual_seed(options.seed)
    model = MotionGenerator().to(device)
    if options.start_from is not None:
        model.load_state_dict(options.start_from)
    optimiser = torch.optim.AdamW(
        model.parameters(), lr=options.peak_rate, weight_decay=0.01, betas=(0.9, 0.98)
    )
    average, step = Average(model), 0
    saved = load_checkpoint(folder / CHECKPOINT, device)
    if saved is not None:
        model.load_state_dict(saved["model"])
        optimiser.load_state_dict(saved["optimiser"])
        average.state, step = saved["average"], saved["step"]
    weights = _dim_weights(data.statistics)
    log, clock, first = Log(folder, "motion_generator"), Clock(options.minutes), step
    while clock.share < 1:
        for group in optimiser.param_groups:
            group["lr"] = cosine_rate(options.peak_rate, step - first, clock.share)
        loss, parts = _loss(model, data, weights, options.batch)
        optimiser.zero_grad(set_to_none=True)
        loss.backward()  # type: ignore[no-untyped-call]
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimiser.step()
        average.update()
        if step % 100 == 0:
            log.write(step=step, loss=loss.item(), **{k: v.item() for k, v in parts.items()})
        step += 1
    save_checkpoint(
        folder / CHECKPOINT,
        model=model.state_dict(),
        optimiser=optimiser.state_dict(),
        average=average.state,
        mean=data.statistics.mean,
        std=data.statistics.std,
        step=step,
    )
    trained = MotionGenerator().to(device)
    trained.load_state_dict(average.state)
    trained.eval()
    log.write(step=step, **evaluate_motion(trained, data))
    return trained


def _loss(
    model: MotionGenerator, data: Performances, weights: Tensor, size: int
) -> tuple[Tensor, dict[str, Tensor]]:
    device = data.motion.device
    window, before, condition = _random_windows(data, size)
    shake = torch.randn_like(before) * 0.06 * torch.rand(size, 1, device=device)
    before = before + shake * (1 - 0.7 * model.slow)
    restart = torch.rand(size, 1, device=device) < 0.03
    before = torch.where(restart, data.neutral[None], before)
    timestep = torch.randint(0, TIMESTEPS, (size,), device=device)
    shipped = torch.tensor(DEFAULT_STEPS, device=device)
    shipped = shipped[torch.randint(0, len(DEFAULT_STEPS), (size,), device=device)]
    chosen = torch.rand(size, device=device) < _DEFAULT_STEP_SHARE
    timestep = torch.where(chosen, shipped, timestep)
    alpha = model.alpha[timestep][:, None, None]
    noisy = alpha.sqrt() * window + (1 - alpha).sqrt() * torch.randn_like(window)
    with torch.autocast(device.type, dtype=torch.bfloat16, enabled=device.type == "cuda"):
        clean = model.clean(noisy, before, condition, timestep)
    error = clean.float() - window
    similarity = (error**2 * weights).mean()
    velocity = ((error[:, 1:] - error[:, :-1]) ** 2 * weights).mean()
    seam = (error[:, 0] ** 2 * weights).mean()
    std = data.statistics.std
    opening = (error[..., _JAW] * std[_JAW] - error[..., _CLOSE] * std[_CLOSE]).abs().mean()
    total = similarity + velocity + 2 * opening + 0.1 * seam
    return total, {"similarity": similarity, "velocity": velocity, "opening": opening}


@torch.no_grad()
def evaluate_motion(model: MotionGenerator, data: Performances) -> dict[str, float]:
    """Held-out windows at the steps that ship: aperture and how much the head moves."""
    device = data.motion.device
    lengths = data.starts[1:] - data.starts[:-1]
    takes = torch.arange(data.training_takes, len(lengths), device=device).repeat_interleave(4)
    if len(takes) == 0:
        return {}
    torch.manual_seed(1)
    first = (torch.rand(len(takes), device=device) * (lengths[takes] - WINDOW - 1)).long()
    truth, before, condition = _windows(data, takes, first.clamp(min=0))
    made = sample(model, torch.randn_like(truth), before, condition)
    mean, std = data.statistics.mean, data.statistics.std
    made_motion = (made * std + mean).cpu().numpy().astype(np.float64)
    true_motion = (truth * std + mean).cpu().numpy().astype(np.float64)
    apertures = [mouth_aperture(m).ravel() for m in (made_motion, true_motion)]
    spread = made_motion[..., 1:4].std((0, 1)) / true_motion[..., 1:4].std((0, 1))
    jerk = [np.abs(np.diff(m[..., 1:4], 3, axis=1)).mean() for m in (made_motion, true_motion)]
    return {
        "aperture_correlation": float(np.corrcoef(*apertures)[0, 1]),
        "aperture_error": float(np.abs(apertures[0] - apertures[1]).mean()),
        "head_spread_ratio": float(spread.mean()),
        "pose_jerk_ratio": float(jerk[0] / jerk[1]),
    }
