"""Training of the picture networks: appearance, warp, decoder, motion extractor."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from studio.faces.random_motion import random_motion
from studio.fit.picture_data import Drives, PictureData, Pool
from studio.fit.picture_losses import picture_loss, psnr, region_weights, ssim
from studio.fit.progress import Average, Clock, Log, cosine_rate, load_checkpoint, save_checkpoint
from studio.models.appearance import CHANNELS, Appearance
from studio.models.generator import Decoder, KeypointCode, Warp
from studio.models.motion_extractor import INPUT_PX, MotionExtractor
from studio.voices.arkit import BLENDSHAPE, POSE

CHECKPOINT = "pictures.pt"
_MAP_SIZES = (64, 128, 256)
_POSE_WEIGHT = 3.0
_SAVE_EVERY_S = 120.0


@dataclass(frozen=True)
class PictureOptions:
    """`minutes` is the wall-clock limit of all runs that share a checkpoint together;
    `cache_from` the share of it after which presenters' features train themselves."""

    minutes: float
    batch: int = 32
    rendered: int = 12
    pool: int = 16000
    fill: int = 40
    peak_rate: float = 5e-4
    cache_from: float = 0.55
    seed: int = 0


class PictureNets(nn.Module):
    """All of them; `cache` holds the presenters' feature maps, which ship inside the avatars."""

    def __init__(self, keypoints: int, presenters: int) -> None:
        super().__init__()
        self.appearance, self.warp = Appearance(), Warp(keypoints)
        self.decoder = Decoder()
        self.motion_extractor = MotionExtractor(keypoints)
        self.cache = nn.ParameterList(
            nn.Parameter(torch.zeros(presenters, channels, size, size))
            for channels, size in zip(CHANNELS, _MAP_SIZES, strict=True)
        )
        self.register_buffer("cache_used", torch.zeros((), dtype=torch.bool))

    def features(self, picture: Tensor, source: Tensor) -> list[Tensor]:
        maps = list(self.appearance(picture))
        if bool(self.cache_used):
            own = (source < len(self.cache[0]))[:, None, None, None]
            row = source.clamp(max=len(self.cache[0]) - 1)
            maps = [
                torch.where(own, kept[row].to(m.dtype), m)
                for kept, m in zip(self.cache, maps, strict=True)
            ]
        return maps

    def draw(
        self, data: PictureData, source: Tensor, motion: Tensor
    ) -> tuple[tuple[Tensor, Tensor, Tensor], Tensor, Tensor]:
        """(picture, newly drawn part, warped source), flow, occlusion."""
        picture = data.sources.image[source].float() / 255
        f64, f128, f256 = self.features(picture, source)
        before, after = data.keypoints(source, motion)
        flow, occlusion, z, field = self.warp(f64, before, after)
        parts = self.decoder.parts(f64, f128, f256, picture, flow, occlusion, z, field)
        return parts, flow, occlusion

    @torch.no_grad()
    def start_cache(self, data: PictureData) -> None:
        presenters = torch.arange(len(self.cache[0]), device=data.device)
        picture = data.sources.image[presenters].float() / 255
        for kept, value in zip(self.cache, self.appearance(picture), strict=True):
            kept.copy_(value)
        self.cache_used.fill_(True)


def new_nets(data: PictureData, code: KeypointCode, regions: Tensor) -> PictureNets:
    nets = PictureNets(data.canonical.shape[1], data.presenters).to(data.device)
    nets.warp.code.load_state_dict(code.state_dict())
    nets.warp.region_weights.copy_(regions)
    people = len(data.canonical) - data.held_out
    body = data.frame(torch.randint(0, people, (512,), device=data.device))
    person = torch.randint(0, people, (512,), device=data.device)
    outputs = torch.cat([random_motion(body), data.canonical[person].flatten(1)], 1)
    nets.motion_extractor.mean.copy_(outputs.mean(0))
    nets.motion_extractor.std.copy_(outputs.std(0) + 1e-3)
    return nets


def train_pictures(
    data: PictureData, nets: PictureNets, folder: Path, options: PictureOptions
) -> PictureNets:
    """Trains, or goes on from the folder's checkpoint; returns the averaged networks."""
    torch.manual_seed(options.seed)
    drawing = [*nets.appearance.parameters(), *nets.warp.parameters(), *nets.decoder.parameters()]
    optimiser = torch.optim.AdamW(
        [{"params": drawing}, {"params": nets.cache.parameters(), "weight_decay": 0.0}],
        lr=options.peak_rate, betas=(0.9, 0.99), weight_decay=1e-4,
    )  # fmt: skip
    extractor_optimiser = torch.optim.AdamW(
        nets.motion_extractor.parameters(), lr=1.2e-3, weight_decay=1e-3
    )
    average, step, spent = Average(nets, 0.998), 0, 0.0
    saved = load_checkpoint(folder / CHECKPOINT, data.device)
    if saved is not None:
        nets.load_state_dict(saved["model"])
        optimiser.load_state_dict(saved["optimiser"])
        extractor_optimiser.load_state_dict(saved["extractor_optimiser"])
        average.state, step, spent = saved["average"], saved["step"], saved["spent"]
    size = data.sources.image.shape[-1]
    pool = Pool(options.pool, size, data.device)
    for _ in range(options.fill):
        pool.push(data.random_drives(options.rendered))
    log, clock = Log(folder, "pictures"), Clock(options.minutes, spent)

    def save() -> None:
        save_checkpoint(
            folder / CHECKPOINT, model=nets.state_dict(), average=average.state, step=step,
            optimiser=optimiser.state_dict(), spent=clock.elapsed,
            extractor_optimiser=extractor_optimiser.state_dict(),
        )  # fmt: skip

    next_save = clock.elapsed + _SAVE_EVERY_S
    while clock.share < 1:
        if not bool(nets.cache_used) and clock.share > options.cache_from:
            nets.start_cache(data)
            average = Average(nets, 0.998)
        pool.push(data.random_drives(options.rendered))
        drives = pool.pick(options.batch)
        rate = cosine_rate(options.peak_rate, step, clock.share, 150)
        optimiser.param_groups[0]["lr"], optimiser.param_groups[1]["lr"] = rate, 6 * rate
        loss, parts = _draw_loss(nets, data, drives, clock.share)
        _descend(optimiser, loss, drawing)
        extractor_optimiser.param_groups[0]["lr"] = 1.2e-3 * (1.02 - clock.share)
        extractor_loss = _extractor_loss(nets, data, drives)
        _descend(extractor_optimiser, extractor_loss, list(nets.motion_extractor.parameters()))
        average.update()
        if step % 100 == 0:
            values = {k: v.item() for k, v in parts.items()}
            log.write(step=step, loss=loss.item(), extractor=extractor_loss.item(), **values)
        step += 1
        if clock.elapsed > next_save:
            save()
            next_save = clock.elapsed + _SAVE_EVERY_S
    if not bool(nets.cache_used):
        nets.start_cache(data)
        average = Average(nets)
    save()
    nets.load_state_dict(average.state)
    nets.eval()
    log.write(step=step, **evaluate_pictures(nets, data))
    return nets


def _descend(optimiser: torch.optim.Optimizer, loss: Tensor, clipped: list[nn.Parameter]) -> None:
    optimiser.zero_grad(set_to_none=True)
    loss.backward()  # type: ignore[no-untyped-call]
    torch.nn.utils.clip_grad_norm_(clipped, 2.0)
    optimiser.step()


def _draw_loss(
    nets: PictureNets, data: PictureData, drives: Drives, share: float
) -> tuple[Tensor, dict[str, Tensor]]:
    kind = data.device.type
    with torch.autocast(kind, dtype=torch.bfloat16, enabled=kind == "cuda"):
        (made, drawn, warped), flow, occlusion = nets.draw(data, drives.source, drives.motion)
    return picture_loss(
        made.float(), drawn.float(), warped.float(), flow.float(), occlusion.float(),
        drives.image.float() / 255, drives.flow.float(), drives.visible.float(), drives.centres,
        share,
    )  # fmt: skip


def _extractor_loss(nets: PictureNets, data: PictureData, drives: Drives) -> Tensor:
    """On the same pictures with other brightness, contrast and noise."""
    count, device = len(drives.source), data.device

    def chance() -> Tensor:
        return torch.rand(count, 1, 1, 1, device=device)

    x = F.interpolate(drives.image.float() / 255, size=INPUT_PX, mode="area")
    x = (x * (0.75 + 0.5 * torch.rand(count, 3, 1, 1, device=device))).clamp(0, 1)
    x = x ** (0.7 + 0.7 * chance())
    x = x + 0.03 * chance() * (chance() < 0.6) * torch.randn_like(x)
    motion, keypoints = nets.motion_extractor(x.clamp(0, 1))
    canonical = data.canonical[data.sources.person[drives.source]]
    wanted = torch.cat([drives.motion, canonical.flatten(1)], 1)
    error = (torch.cat([motion, keypoints.flatten(1)], 1) - wanted) / nets.motion_extractor.std
    weights = torch.ones_like(error[0])
    weights[: len(POSE)] = _POSE_WEIGHT
    return (error.abs() * weights).mean()


@torch.no_grad()
def evaluate_pictures(
    nets: PictureNets, data: PictureData, each: int = 8, seed: int = 50
) -> dict[str, float]:
    """Presenters and held-out identities in motion never trained on."""
    torch.manual_seed(seed)
    figures: dict[str, float] = {}
    first_held = data.training_sources
    groups = {
        "presenters": torch.arange(data.presenters, device=data.device),
        "held_out": torch.arange(first_held, len(data.sources.person), device=data.device),
    }
    for name, sources in groups.items():
        if len(sources) == 0:
            continue
        source = sources.repeat_interleave(each)
        drives = data.drive(source, random_motion(data.sources.body[source]))
        rows = []
        for part in torch.arange(len(source), device=data.device).split(4):
            made = nets.draw(data, source[part], drives.motion[part])[0][0].float().clamp(0, 1)
            target = drives.image[part].float() / 255
            mouth = region_weights(drives.centres[part], target.shape[-1]) > 7
            near = mouth.float().flatten(1).sum(1).clamp(min=1) * 3
            squared = ((made - target) ** 2 * mouth).flatten(1).sum(1) / near
            motion, keypoints = nets.motion_extractor(
                F.interpolate(target, size=INPUT_PX, mode="area")
            )
            error = (motion - drives.motion[part]).abs()
            points = keypoints - data.canonical[data.sources.person[source[part]]]
            rows.append(
                torch.stack(
                    [
                        psnr(made, target), ssim(made, target).flatten(1).mean(1),
                        -10 * squared.clamp(min=1e-10).log10(), error[:, 1], error[:, 2],
                        error[:, BLENDSHAPE["jawOpen"]], error[:, len(POSE) :].mean(1),
                        points.norm(dim=-1).mean(1) * target.shape[-1] / 2,
                    ], 1,
                )
            )  # fmt: skip
        means = torch.cat(rows).mean(0).tolist()
        names = ("psnr", "ssim", "mouth_and_eyes_psnr", "pitch_error_deg", "yaw_error_deg",
                 "jaw_error", "arkit_error", "keypoint_error_px")  # fmt: skip
        figures.update({f"{name}_{k}": v for k, v in zip(names, means, strict=True)})
    return figures
