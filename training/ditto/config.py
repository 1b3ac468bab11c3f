"""Sizes of the Ditto v0.4 networks, and smaller ones of the same shape for tests.

The width multiplier scales channel counts only. What the engine's contracts fix stays: 21
keypoints, the 265 motion dims, the condition's 79 non-audio dims, the stitching MLP, the depth of
the feature volume and the 110 channels that enter the dense-motion core; so do the hidden channels
of SPADE, which upstream fixes.
"""

from __future__ import annotations

from dataclasses import dataclass


def scaled(channels: int, width: float, multiple: int) -> int:
    """`channels * width`, rounded to a multiple of `multiple` and at least that."""
    return max(multiple, round(channels * width / multiple) * multiple)


@dataclass(frozen=True)
class DittoConfig:
    """One Ditto model family. `width` 1.0 and `image_size` 256 are the released networks."""

    width: float = 1.0
    # Side of the pictures the extractors read; the feature volume has a quarter of it, the
    # decoded picture twice as much. The hourglass halves the volume five times, so 128 is the
    # smallest.
    image_size: int = 256

    keypoints: int = 21
    pose_bins: int = 66
    volume_depth: int = 16
    hourglass_blocks: int = 5
    compress: int = 4  # feature channels that the dense-motion network deforms
    sequence_frames: int = 80
    lmdm_layers: int = 8
    lmdm_heads: int = 8
    spade_hidden: int = 128
    hubert_layers: int = 24
    hubert_heads: int = 16
    emotions: int = 8
    eye_open_dims: int = 2
    eye_ball_dims: int = 6
    audio_samples: int = 6480

    def __post_init__(self) -> None:
        if not 0.0 < self.width <= 4.0:
            raise ValueError(f"width: found {self.width}, wanted a number in (0, 4]")
        if self.image_size < 128 or self.image_size % 128:
            raise ValueError(f"image size: found {self.image_size}, wanted a multiple of 128")

    @property
    def volume_size(self) -> int:
        """Height and width of the feature volume."""
        return self.image_size // 4

    @property
    def volume_channels(self) -> int:
        return scaled(32, self.width, 2)

    @property
    def feature_channels(self) -> int:
        """Channels of the warped 2-D feature map."""
        return 4 * self.block_expansion

    @property
    def block_expansion(self) -> int:
        return scaled(64, self.width, 4)

    @property
    def hourglass_expansion(self) -> int:
        return scaled(32, self.width, 2)

    @property
    def hourglass_max(self) -> int:
        return scaled(1024, self.width, 8)

    @property
    def core_channels(self) -> int:
        """Channels of the dense-motion core's input: heat map + features, per motion."""
        return (self.keypoints + 1) * (self.compress + 1)

    @property
    def convnext_dims(self) -> tuple[int, int, int, int]:
        first = scaled(96, self.width, 4)
        return first, 2 * first, 4 * first, 8 * first

    @property
    def hubert_dims(self) -> int:
        return scaled(1024, self.width, 2 * self.hubert_heads)

    @property
    def hubert_conv_dims(self) -> int:
        return scaled(512, self.width, 8)

    @property
    def latent_dims(self) -> int:
        return scaled(512, self.width, 2 * self.lmdm_heads)

    @property
    def motion_dims(self) -> int:
        """scale, three poses as bins, translation, expression."""
        return 1 + 3 * self.pose_bins + 3 + 3 * self.keypoints

    @property
    def condition_dims(self) -> int:
        """audio, emotion, eye opening, eye ball, source keypoints."""
        extra = self.emotions + self.eye_open_dims + self.eye_ball_dims + 3 * self.keypoints
        return self.hubert_dims + extra
