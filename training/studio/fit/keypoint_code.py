"""The keypoint code is trained first, without pictures, to tell expression and pose."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from studio.faces.maths import transform_keypoints
from studio.faces.random_motion import random_body, random_motion
from studio.fit.progress import Clock, Log
from studio.models.generator import WHITE, KeypointCode
from studio.voices.arkit import BLENDSHAPE, POSE

_BATCH, _SAMPLES = 1024, 20000


def _pairs(canonical: Tensor, basis: Tensor, count: int) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Source and driving keypoints of blends of two people, and both motions."""
    first, second = torch.randint(0, len(canonical), (2, count), device=canonical.device)
    share = torch.rand(count, 1, 1, device=canonical.device) ** 2
    person = canonical[first] * (1 - share) + canonical[second] * share
    nobody = torch.zeros(count, dtype=torch.bool, device=canonical.device)
    body = random_body(count, canonical.device, nobody)
    source, driving = random_motion(body, 0.6), random_motion(body)
    calm = torch.rand(count, device=canonical.device) < 0.4
    source[calm, len(POSE) :] = 0
    source[calm, 1:4] *= 0.1
    return (
        transform_keypoints(person, source, basis),
        transform_keypoints(person, driving, basis),
        source,
        driving,
    )


def train_keypoint_code(
    canonical: Tensor, basis: Tensor, minutes: float, folder: Path, seed: int
) -> KeypointCode:
    """`canonical` [people, K, 3]; the more people, the better."""
    torch.manual_seed(seed)
    model = KeypointCode(canonical.shape[1]).to(canonical.device)
    source, driving, source_motion, driving_motion = _pairs(canonical, basis, _SAMPLES)
    both = torch.cat([source.flatten(1), driving.flatten(1)], 1)
    centred = both - both.mean(0)
    values, vectors = torch.linalg.eigh((centred.T @ centred / len(both)).double())
    values, vectors = values.flip(0)[:WHITE].clamp(min=0), vectors.flip(1)[:, :WHITE]
    model.mean.copy_(both.mean(0))
    model.whitening.copy_((vectors / (values.sqrt() + 2e-4)).float())
    mean, std = driving_motion.mean(0), driving_motion.std(0) + 1e-3
    source_mean, source_std = source_motion.mean(0), source_motion.std(0) + 0.05
    optimiser = torch.optim.AdamW(model.parameters(), lr=2e-3, weight_decay=1e-4)
    log, clock, step = Log(folder, "keypoint_code"), Clock(minutes), 0
    first = len(POSE)
    while clock.share < 1:
        for group in optimiser.param_groups:
            group["lr"] = 2e-3 * min(1.0, step / 50 + 0.02) * (1.01 - clock.share)
        source, driving, source_motion, driving_motion = _pairs(canonical, basis, _BATCH)
        shape = (source_motion - source_mean)[:, first:] / source_std[first:] * 0.5
        wanted = torch.cat([(driving_motion - mean) / std, shape, source_motion[:, 1:4] / 6], 1)
        code = model(source, driving)[:, : wanted.shape[1]]
        loss = F.smooth_l1_loss(code, wanted, beta=0.3)
        optimiser.zero_grad(set_to_none=True)
        loss.backward()  # type: ignore[no-untyped-call]
        optimiser.step()
        if step % 100 == 0:
            jaw = BLENDSHAPE["jawOpen"]
            guess = code[:, jaw] * std[jaw] + mean[jaw]
            error = (guess - driving_motion[:, jaw]).abs().mean()
            log.write(step=step, loss=loss.item(), jaw_error=error.item())
        step += 1
    return model


def region_weights(canonical: Tensor) -> Tensor:
    """Keypoints whose mean is the mouth, and the two pupils [3, K]."""
    mean = canonical.mean(0)
    lips = (mean[:, 1] > 0.015) & (mean[:, 1] < 0.10) & (mean[:, 0].abs() < 0.20)
    weights = torch.zeros(3, len(mean), device=mean.device)
    weights[0, lips] = 1 / np.maximum(int(lips.sum()), 1)
    weights[1, -3], weights[2, -2] = 1, 1
    return weights
