"""Dense motion and warping of the feature volume."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from ditto.blocks import Hourglass, SameBlock2d
from ditto.config import DittoConfig

# Variance of the keypoint heat maps, in squared volume coordinates (-1..1 per axis).
HEATMAP_VARIANCE = 0.01


def coordinate_grid(depth: int, height: int, width: int) -> Tensor:
    """[D, H, W, 3] of (x, y, z), each axis from -1 to 1 at the centres of the end cells."""

    def axis(count: int) -> Tensor:
        return 2 * (torch.arange(count, dtype=torch.float32) / (count - 1)) - 1

    z, y, x = torch.meshgrid(axis(depth), axis(height), axis(width), indexing="ij")
    return torch.stack([x, y, z], dim=-1)


class DenseMotionNetwork(nn.Module):
    """Keypoint pairs -> sampling grid of the volume and occlusion map."""

    grid: Tensor

    def __init__(self, config: DittoConfig) -> None:
        super().__init__()
        self.motions = config.keypoints + 1
        self.channels = config.compress
        self.depth = config.volume_depth
        size = config.volume_size
        self.hourglass = Hourglass(
            config.hourglass_expansion,
            config.core_channels,
            config.hourglass_blocks,
            config.hourglass_max,
        )
        filters = self.hourglass.out_filters
        self.mask = nn.Conv3d(filters, self.motions, 7, padding=3)
        self.compress = nn.Conv3d(config.volume_channels, self.channels, 1)
        self.norm = nn.BatchNorm3d(self.channels)
        self.occlusion = nn.Conv2d(filters * self.depth, 1, 7, padding=3)
        # A constant of the exported graph, not part of the public state dict.
        self.register_buffer("grid", coordinate_grid(self.depth, size, size), persistent=False)

    def core(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """[B, 22 * 5, D, H, W] -> mask over motions [B, 22, D, H, W], occlusion [B, 1, H, W]."""
        prediction = self.hourglass(x)
        mask = torch.softmax(self.mask(prediction), dim=1)
        occlusion = torch.sigmoid(self.occlusion(prediction.flatten(1, 2)))
        return mask, occlusion

    def sparse_motions(self, kp_source: Tensor, kp_driving: Tensor) -> Tensor:
        """[B, 22, D, H, W, 3]: the resting grid, then one translation per keypoint."""
        shift = (kp_source - kp_driving)[:, :, None, None, None, :]
        shift = torch.cat([torch.zeros_like(shift[:, :1]), shift], dim=1)
        return self.grid + shift

    def heatmaps(self, kp_source: Tensor, kp_driving: Tensor) -> Tensor:
        """[B, 22, D, H, W]: driving minus source Gaussian of each keypoint; zero for rest."""

        def gaussian(keypoints: Tensor) -> Tensor:
            offset = self.grid - keypoints[:, :, None, None, None, :]
            return torch.exp(-0.5 / HEATMAP_VARIANCE * offset.square().sum(dim=-1))

        difference = gaussian(kp_driving) - gaussian(kp_source)
        return torch.cat([torch.zeros_like(difference[:, :1]), difference], dim=1)

    def core_input(
        self, volume: Tensor, kp_source: Tensor, kp_driving: Tensor
    ) -> tuple[Tensor, Tensor]:
        """Input of `core` and the sparse motions it weighs."""
        features = F.relu(self.norm(self.compress(volume)))
        motions = self.sparse_motions(kp_source, kp_driving)
        # All motions side by side along depth: one sampling call, no copies of the features.
        stacked = motions.flatten(1, 2)
        deformed = F.grid_sample(features, stacked, align_corners=False)
        deformed = torch.unflatten(deformed, 2, (self.motions, self.depth)).transpose(1, 2)
        heat = self.heatmaps(kp_source, kp_driving).unsqueeze(2)
        return torch.cat([heat, deformed], dim=2).flatten(1, 2), motions

    def forward(
        self, volume: Tensor, kp_source: Tensor, kp_driving: Tensor
    ) -> tuple[Tensor, Tensor]:
        """Sampling grid [B, D, H, W, 3] and occlusion [B, 1, H, W]."""
        x, motions = self.core_input(volume, kp_source, kp_driving)
        mask, occlusion = self.core(x)
        return (motions * mask.unsqueeze(-1)).sum(dim=1), occlusion


class WarpingNetwork(nn.Module):
    """Feature volume [B, C, D, H, W] and keypoints [B, 21, 3] -> warped map [B, 256, H, W]."""

    def __init__(self, config: DittoConfig) -> None:
        super().__init__()
        channels = config.feature_channels
        self.dense_motion_network = DenseMotionNetwork(config)
        self.third = SameBlock2d(config.volume_channels * config.volume_depth, channels, 0.01)
        self.fourth = nn.Conv2d(channels, channels, 1)

    def forward(self, volume: Tensor, kp_source: Tensor, kp_driving: Tensor) -> Tensor:
        deformation, occlusion = self.dense_motion_network(volume, kp_source, kp_driving)
        warped = F.grid_sample(volume, deformation, align_corners=False).flatten(1, 2)
        feature: Tensor = self.fourth(self.third(warped)) * occlusion
        return feature


class DenseMotionCore(nn.Module):
    """The costly part of the dense-motion network, as a graph of its own."""

    def __init__(self, network: DenseMotionNetwork) -> None:
        super().__init__()
        self.network = network

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        return self.network.core(x)
