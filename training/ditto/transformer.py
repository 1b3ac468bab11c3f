"""Attention, rotary embedding and FiLM of the motion generator."""

from __future__ import annotations

import math
from typing import cast

import torch
from torch import Tensor, nn
from torch.nn import functional as F

ROTARY_BASE = 10000.0


class Rotary(nn.Module):
    """Rotary position embedding (arXiv 2104.09864) over adjacent channel pairs.

    Applied to whole tokens, before the projections of the attention.
    """

    freqs: Tensor

    def __init__(self, channels: int) -> None:
        super().__init__()
        exponents = torch.arange(0, channels, 2, dtype=torch.float32) / channels
        self.register_buffer("freqs", 1.0 / ROTARY_BASE**exponents)

    def forward(self, x: Tensor) -> Tensor:
        positions = torch.arange(x.shape[1], dtype=self.freqs.dtype, device=x.device)
        angles = positions[:, None] * self.freqs
        cos, sin = angles.cos(), angles.sin()
        even, odd = x[..., ::2], x[..., 1::2]
        return torch.stack([even * cos - odd * sin, odd * cos + even * sin], dim=-1).flatten(-2)


def split_heads(x: Tensor, heads: int) -> Tensor:
    """[B, F, C] -> [B, heads, F, C / heads]."""
    return torch.unflatten(x, -1, (heads, -1)).transpose(1, 2)


def attend(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    """Scaled dot-product attention of split heads, joined again to [B, F, C]."""
    scores = (q / math.sqrt(q.shape[-1])) @ k.transpose(-1, -2)
    return (torch.softmax(scores, dim=-1) @ v).transpose(1, 2).flatten(-2)


class Attention(nn.Module):
    """Multi-head attention with one packed projection matrix for queries, keys and values."""

    def __init__(self, channels: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.in_proj_weight = nn.Parameter(torch.empty(3 * channels, channels))
        self.in_proj_bias = nn.Parameter(torch.zeros(3 * channels))
        self.out_proj = nn.Linear(channels, channels)
        nn.init.xavier_uniform_(self.in_proj_weight)

    def forward(self, query: Tensor, key: Tensor, value: Tensor) -> Tensor:
        weights, biases = self.in_proj_weight.chunk(3), self.in_proj_bias.chunk(3)
        q, k, v = (
            split_heads(F.linear(x, weight, bias), self.heads)
            for x, weight, bias in zip((query, key, value), weights, biases, strict=True)
        )
        return cast(Tensor, self.out_proj(attend(q, k, v)))


class Film(nn.Module):
    """Feature-wise scale and shift from the diffusion step's embedding."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.block = nn.Sequential(nn.Mish(), nn.Linear(channels, 2 * channels))

    def forward(self, x: Tensor, embedding: Tensor) -> Tensor:
        scale, shift = self.block(embedding).unsqueeze(1).chunk(2, dim=-1)
        return cast(Tensor, (scale + 1) * x + shift)


class EncoderLayer(nn.Module):
    """Pre-norm self-attention and feed-forward."""

    def __init__(self, channels: int, heads: int, hidden: int, rotary: Rotary) -> None:
        super().__init__()
        self.self_attn = Attention(channels, heads)
        self.linear1 = nn.Linear(channels, hidden)
        self.linear2 = nn.Linear(hidden, channels)
        self.norm1 = nn.LayerNorm(channels)
        self.norm2 = nn.LayerNorm(channels)
        self.rotary = rotary

    def forward(self, x: Tensor) -> Tensor:
        y = self.norm1(x)
        rotated = self.rotary(y)
        x = x + self.self_attn(rotated, rotated, y)
        return x + cast(Tensor, self.linear2(F.gelu(self.linear1(self.norm2(x)))))


class FilmDecoderLayer(nn.Module):
    """Pre-norm self-attention, cross-attention and feed-forward, each modulated by FiLM."""

    def __init__(self, channels: int, heads: int, hidden: int, rotary: Rotary) -> None:
        super().__init__()
        self.self_attn = Attention(channels, heads)
        self.multihead_attn = Attention(channels, heads)
        self.linear1 = nn.Linear(channels, hidden)
        self.linear2 = nn.Linear(hidden, channels)
        self.norm1 = nn.LayerNorm(channels)
        self.norm2 = nn.LayerNorm(channels)
        self.norm3 = nn.LayerNorm(channels)
        self.film1 = Film(channels)
        self.film2 = Film(channels)
        self.film3 = Film(channels)
        self.rotary = rotary

    def forward(self, x: Tensor, memory: Tensor, embedding: Tensor) -> Tensor:
        y = self.norm1(x)
        rotated = self.rotary(y)
        x = x + self.film1(self.self_attn(rotated, rotated, y), embedding)
        query = self.rotary(self.norm2(x))
        x = x + self.film2(self.multihead_attn(query, self.rotary(memory), memory), embedding)
        y = self.linear2(F.gelu(self.linear1(self.norm3(x))))
        return x + cast(Tensor, self.film3(y, embedding))
