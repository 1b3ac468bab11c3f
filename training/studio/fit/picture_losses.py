"""How a drawn picture is compared with a rendered one."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor

from studio.models.blocks import pixel_grid

_MOUTH, _EYES = (12.0, 0.085), (8.0, 0.05)  # weight and radius (crop units)


def region_weights(centres: Tensor, size: int) -> Tensor:
    """[B, 1, size, size]: 1, more around mouth and eyes."""
    grid = pixel_grid(size).permute(1, 2, 0)[None].to(centres.device)

    def around(centre: Tensor, radius: float) -> Tensor:
        squared = ((grid - centre[:, None, None]) ** 2).sum(-1)
        return torch.exp(-squared / (2 * radius**2))

    weights = 1 + _MOUTH[0] * around(centres[:, 0], _MOUTH[1])
    for eye in (1, 2):
        weights = weights + _EYES[0] * around(centres[:, eye], _EYES[1])
    return weights[:, None]


def laplacian_pyramid(image: Tensor, levels: int = 4) -> list[Tensor]:
    taps = image.new_tensor([1.0, 4, 6, 4, 1]) / 16
    kernel = (taps[:, None] * taps[None]).expand(image.shape[1], 1, 5, 5)
    out = []
    for _ in range(levels):
        padded = F.pad(image, (2, 2, 2, 2), mode="reflect")
        small = F.conv2d(padded, kernel, stride=2, groups=image.shape[1])
        large = F.interpolate(small, scale_factor=2, mode="bilinear", align_corners=False)
        out.append(image - large)
        image = small
    return [*out, image]


def ssim(a: Tensor, b: Tensor) -> Tensor:
    """Structural similarity per pixel (Wang et al. 2004), 11 x 11 Gaussian window."""
    line = torch.exp(-((torch.arange(11, device=a.device) - 5.0) ** 2) / (2 * 1.5**2))
    line = line / line.sum()
    window = (line[:, None] * line[None]).expand(a.shape[1], 1, 11, 11)

    def mean(x: Tensor) -> Tensor:
        return F.conv2d(x, window, padding=5, groups=a.shape[1])

    ma, mb = mean(a), mean(b)
    va, vb, cov = mean(a * a) - ma * ma, mean(b * b) - mb * mb, mean(a * b) - ma * mb
    return ((2 * ma * mb + 1e-4) * (2 * cov + 9e-4)) / (
        (ma * ma + mb * mb + 1e-4) * (va + vb + 9e-4)
    )


def picture_loss(
    made: Tensor, drawn: Tensor, warped: Tensor, flow: Tensor, occlusion: Tensor, target: Tensor,
    true_flow: Tensor, visible: Tensor, centres: Tensor, share: float,
) -> tuple[Tensor, dict[str, Tensor]]:  # fmt: skip
    """Weighted sum; the exact flow counts most at first (`share` of the training done, 0..1)."""
    weights = region_weights(centres, target.shape[-1])
    l1 = ((made - target).abs() * weights).mean()
    pyramid = made.new_zeros(())
    pairs = zip(laplacian_pyramid(made), laplacian_pyramid(target), strict=True)
    for level, (a, b) in enumerate(pairs):
        here = F.interpolate(weights, size=a.shape[-2:], mode="area")
        pyramid = pyramid + ((a - b).abs() * here).mean() * (2.0 if level < 2 else 1.0)
    structure = 1 - (ssim(made, target) * weights).mean() / weights.mean()
    small = F.interpolate(weights, size=flow.shape[-2:], mode="area")
    flow_error = ((flow - true_flow).abs() * visible * small).mean()
    seen = F.binary_cross_entropy(occlusion.clamp(1e-4, 1 - 1e-4), visible)
    large = F.interpolate(visible, size=target.shape[-2:])
    warp_error = ((warped - target).abs() * large * weights).mean()
    new_error = ((drawn - target).abs() * (weights - 0.7)).mean()
    total = 1.5 * l1 + pyramid + 0.4 * structure + 9 * (3 * (1 - share) + 0.3) * flow_error
    total = total + 0.05 * seen + 0.5 * warp_error + 0.6 * new_error
    return total, {"l1": l1, "flow": flow_error, "ssim": 1 - structure}


def psnr(a: Tensor, b: Tensor) -> Tensor:
    """Per item, for values 0..1."""
    return -10 * ((a - b) ** 2).flatten(1).mean(1).clamp(min=1e-10).log10()
