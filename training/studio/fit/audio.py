"""Training of the audio encoder."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from studio.fit.progress import Average, Clock, Log, cosine_rate, load_checkpoint, save_checkpoint
from studio.fit.speech_data import SpeechBatch, SpeechData
from studio.models.audio_encoder import (
    FRAME_SAMPLES,
    LIP_DIMS,
    PAST_FRAMES,
    WARPS,
    AudioEncoder,
    context_samples,
)
from studio.voices.augment import Augmenter, add_breaths
from studio.voices.lips import LIP

CHECKPOINT = "audio_encoder.pt"
_MEL_BANDS = 64


@dataclass(frozen=True)
class AudioOptions:
    """`minutes` is wall-clock; `start_from` a state dict that begins the training."""

    minutes: float
    batch: int = 256
    frames: int = 40
    peak_rate: float = 2e-3
    silence_share: float = 0.15
    seed: int = 0
    start_from: dict[str, Tensor] | None = None


def train_audio(data: SpeechData, folder: Path, options: AudioOptions) -> AudioEncoder:
    """Trains, or goes on from the folder's checkpoint; returns the averaged encoder."""
    device = data.device
    torch.manual_seed(options.seed)
    model = AudioEncoder().to(device)
    if options.start_from is not None:
        model.load_state_dict(options.start_from)
    optimiser = torch.optim.AdamW(
        model.parameters(), lr=options.peak_rate, weight_decay=0.02, betas=(0.9, 0.98)
    )
    average = Average(model)
    step = 0
    saved = load_checkpoint(folder / CHECKPOINT, device)
    if saved is not None:
        model.load_state_dict(saved["model"])
        optimiser.load_state_dict(saved["optimiser"])
        average.state, step = saved["average"], saved["step"]
    model.mix_probability = 0.5
    model.train()
    augment = Augmenter(context_samples(options.frames), device)
    log, clock, first = Log(folder, "audio_encoder"), Clock(options.minutes), step
    while clock.share < 1:
        rng = np.random.default_rng((options.seed, step))
        for group in optimiser.param_groups:
            group["lr"] = cosine_rate(options.peak_rate, step - first, clock.share)
        batch = data.random_batch(options.batch, options.frames, rng)
        loss, parts = _loss(model, batch, augment, options.silence_share)
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
        step=step,
    )
    trained = AudioEncoder().to(device)
    trained.load_state_dict(average.state)
    trained.eval()
    log.write(step=step, **evaluate_audio(trained, data))
    return trained


def _lip_weights(device: torch.device) -> Tensor:
    weights = torch.ones(LIP_DIMS, device=device)
    weights[LIP["jaw"]], weights[LIP["close"]], weights[LIP["labiodental"]] = 2.0, 1.5, 0.7
    return weights


def _masked_bands(batch: int, device: torch.device) -> Tensor:
    """SpecAugment over frequency: up to two bands of up to ten filters are zero."""
    band = torch.arange(_MEL_BANDS, device=device)[None]
    kept = torch.ones(batch, _MEL_BANDS, device=device)
    for _ in range(2):
        start = torch.rand(batch, 1, device=device) * _MEL_BANDS
        on = torch.rand(batch, 1, device=device) < 0.5
        width = torch.rand(batch, 1, device=device) * 10 * on
        kept = kept * (1 - ((band >= start) & (band < start + width)).float())
    return kept[:, :, None]


def _loss(
    model: AudioEncoder, batch: SpeechBatch, augment: Augmenter, silence_share: float
) -> tuple[Tensor, dict[str, Tensor]]:
    device = batch.samples.device
    speech = batch.prosody[..., 0]
    sound = add_breaths(batch.samples, speech, PAST_FRAMES * FRAME_SAMPLES, FRAME_SAMPLES)
    sound, silent = augment(sound, silence_share)
    spoken = (~silent)[:, None]
    lips, prosody = batch.lips * spoken[..., None], batch.prosody * spoken[..., None]
    phones = batch.phones * spoken
    warp = torch.randint(0, WARPS, (len(sound),), device=device)
    mel = model.mel(sound, warp)
    with torch.autocast(device.type, dtype=torch.bfloat16, enabled=device.type == "cuda"):
        hidden = model.trunk(mel, _masked_bands(len(sound), device))
        outputs = model.heads(hidden)
        from_latent = torch.sigmoid(model.lips_from_latent(outputs[2]))
    guess, guess_prosody, _, logits = (o.float().transpose(1, 2) for o in outputs)
    from_latent = from_latent.float().transpose(1, 2)
    weights = _lip_weights(device)
    closing = 1 + 2 * lips[..., LIP["bilabial"], None] + 2 * lips[..., LIP["labiodental"], None]
    error = guess - lips
    lip_loss = (error**2 * weights * closing).mean() + 0.5 * (error.abs() * weights).mean()
    latent_loss = ((from_latent - lips) ** 2 * weights * closing).mean()
    velocity = ((error[:, 1:] - error[:, :-1]) ** 2 * weights).mean()
    phone_loss = F.cross_entropy(logits.transpose(1, 2), phones, label_smoothing=0.05)
    prosody_loss = ((guess_prosody - prosody) ** 2).mean()
    total = 3 * lip_loss + 1.5 * latent_loss + 2 * velocity + 0.25 * phone_loss + 0.5 * prosody_loss
    right = (logits.argmax(-1) == phones).float().mean()
    return total, {"lips": lip_loss, "phones": phone_loss, "phone_accuracy": right}


def _opening(lips: Tensor) -> Tensor:
    jaw = (lips[..., LIP["jaw"]] - lips[..., LIP["close"]]).clamp(min=0)
    return jaw + 0.3 * (lips[..., LIP["lower_down"]] + lips[..., LIP["upper_up"]])


@torch.no_grad()
def evaluate_audio(model: AudioEncoder, data: SpeechData) -> dict[str, float]:
    """Figures over the held-out voices' sessions, unaugmented."""
    rows: list[list[float]] = []
    for session in data.held_out:
        frames = max(1, int(data.seconds[session] * 25) - 2)
        ids = torch.tensor([session], device=data.device)
        start = torch.zeros(1, device=data.device, dtype=torch.float64)
        batch = data.cut(ids, start, start + 1, frames)
        features, logits = model(batch.samples)
        spoken = batch.prosody[..., 0] > 0.5
        right = ((logits.argmax(-1) == batch.phones) & spoken).sum() / spoken.sum()
        guess, truth = _opening(features)[0], _opening(batch.lips)[0]
        both = torch.stack([guess - guess.mean(), truth - truth.mean()])
        correlation = (both[0] * both[1]).sum() / (both[0].norm() * both[1].norm() + 1e-9)
        closed = (features[0, :, LIP["bilabial"]] > 0.5).float()
        near = F.max_pool1d(closed[None, None], 3, 1, 1)[0, 0] > 0
        wanted = batch.lips[0, :, LIP["bilabial"]] > 0.8
        recall = (wanted & near).sum() / wanted.sum().clamp(min=1)
        rows.append([float(right), float(correlation), float(recall)])
    if not rows:
        return {}
    names = ("held_out_phone_accuracy", "held_out_aperture_correlation", "held_out_closure_recall")
    return dict(zip(names, np.mean(rows, axis=0).tolist(), strict=True))
