"""HuBERT Large as a streaming encoder: one chunk of audio in, one row per 20 ms out."""

from __future__ import annotations

import math
from typing import cast

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from ditto.config import DittoConfig
from ditto.transformer import attend, split_heads

# (kernel, stride) of the waveform convolutions: 320 samples per row in all.
CONV_GEOMETRY = ((10, 5), (3, 2), (3, 2), (3, 2), (3, 2), (2, 2), (2, 2))
POSITION_KERNEL = 128
POSITION_GROUPS = 16


class ConvLayer(nn.Module):
    """Convolution, layer norm over channels, GELU."""

    def __init__(self, inputs: int, outputs: int, kernel: int, stride: int) -> None:
        super().__init__()
        self.conv = nn.Conv1d(inputs, outputs, kernel, stride=stride)
        self.layer_norm = nn.LayerNorm(outputs)

    def forward(self, x: Tensor) -> Tensor:
        return F.gelu(self.layer_norm(self.conv(x).transpose(1, 2))).transpose(1, 2)


class FeatureExtractor(nn.Module):
    def __init__(self, channels: int) -> None:
        super().__init__()
        inputs = [1] + [channels] * (len(CONV_GEOMETRY) - 1)
        self.conv_layers = nn.ModuleList(
            ConvLayer(count, channels, kernel, stride)
            for count, (kernel, stride) in zip(inputs, CONV_GEOMETRY, strict=True)
        )

    def forward(self, audio: Tensor) -> Tensor:
        x = audio.unsqueeze(1)
        for layer in self.conv_layers:
            x = layer(x)
        return x.transpose(1, 2)


class FeatureProjection(nn.Module):
    def __init__(self, inputs: int, outputs: int) -> None:
        super().__init__()
        self.layer_norm = nn.LayerNorm(inputs)
        self.projection = nn.Linear(inputs, outputs)

    def forward(self, x: Tensor) -> Tensor:
        return cast(Tensor, self.projection(self.layer_norm(x)))


class WeightNormConv1d(nn.Module):
    """Grouped convolution with weight norm along the kernel axis."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        shape = (channels, channels // POSITION_GROUPS, POSITION_KERNEL)
        self.weight_v = nn.Parameter(torch.randn(shape) / math.sqrt(shape[1] * shape[2]))
        self.weight_g = nn.Parameter(self.weight_v.detach().norm(dim=(0, 1), keepdim=True))
        self.bias = nn.Parameter(torch.zeros(channels))

    def weight(self) -> Tensor:
        """The normalised weight."""
        length = self.weight_v.square().sum(dim=(0, 1), keepdim=True).sqrt()
        return self.weight_v * (self.weight_g / length)

    def forward(self, x: Tensor) -> Tensor:
        padding = POSITION_KERNEL // 2
        y = F.conv1d(x, self.weight(), self.bias, padding=padding, groups=POSITION_GROUPS)
        return y[:, :, :-1]  # an even kernel yields one row too many


class PositionEmbedding(nn.Module):
    def __init__(self, channels: int) -> None:
        super().__init__()
        self.conv = WeightNormConv1d(channels)

    def forward(self, x: Tensor) -> Tensor:
        return F.gelu(self.conv(x.transpose(1, 2))).transpose(1, 2)


class SelfAttention(nn.Module):
    def __init__(self, channels: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.k_proj = nn.Linear(channels, channels)
        self.v_proj = nn.Linear(channels, channels)
        self.q_proj = nn.Linear(channels, channels)
        self.out_proj = nn.Linear(channels, channels)

    def forward(self, x: Tensor) -> Tensor:
        q, k, v = (
            split_heads(projection(x), self.heads)
            for projection in (self.q_proj, self.k_proj, self.v_proj)
        )
        return cast(Tensor, self.out_proj(attend(q, k, v)))


class FeedForward(nn.Module):
    def __init__(self, channels: int, hidden: int) -> None:
        super().__init__()
        self.intermediate_dense = nn.Linear(channels, hidden)
        self.output_dense = nn.Linear(hidden, channels)

    def forward(self, x: Tensor) -> Tensor:
        return cast(Tensor, self.output_dense(F.gelu(self.intermediate_dense(x))))


class Layer(nn.Module):
    """Pre-norm transformer layer."""

    def __init__(self, channels: int, heads: int) -> None:
        super().__init__()
        self.attention = SelfAttention(channels, heads)
        self.layer_norm = nn.LayerNorm(channels)
        self.feed_forward = FeedForward(channels, 4 * channels)
        self.final_layer_norm = nn.LayerNorm(channels)

    def forward(self, x: Tensor) -> Tensor:
        x = x + self.attention(self.layer_norm(x))
        return x + cast(Tensor, self.feed_forward(self.final_layer_norm(x)))


class Encoder(nn.Module):
    def __init__(self, channels: int, heads: int, layers: int) -> None:
        super().__init__()
        self.pos_conv_embed = PositionEmbedding(channels)
        self.layer_norm = nn.LayerNorm(channels)
        self.layers = nn.ModuleList(Layer(channels, heads) for _ in range(layers))

    def forward(self, x: Tensor) -> Tensor:
        x = x + self.pos_conv_embed(x)
        for layer in self.layers:
            x = layer(x)
        return cast(Tensor, self.layer_norm(x))


class Hubert(nn.Module):
    """16 kHz samples [B, N] -> rows [B, T, 1024] of the last layer, T = 20 for N = 6480."""

    def __init__(self, config: DittoConfig) -> None:
        super().__init__()
        channels = config.hubert_dims
        # Only pre-training reads it; the public state dict has it.
        self.masked_spec_embed = nn.Parameter(torch.zeros(channels))
        self.feature_extractor = FeatureExtractor(config.hubert_conv_dims)
        self.feature_projection = FeatureProjection(config.hubert_conv_dims, channels)
        self.encoder = Encoder(channels, config.hubert_heads, config.hubert_layers)

    def forward(self, audio: Tensor) -> Tensor:
        features = self.feature_projection(self.feature_extractor(audio))
        return cast(Tensor, self.encoder(features))
