"""LMDM, the latent motion diffusion model: one guided denoising step."""

from __future__ import annotations

import math
from typing import cast

import torch
from torch import Tensor, nn

from ditto.config import DittoConfig
from ditto.transformer import EncoderLayer, FilmDecoderLayer, Rotary

TIMESTEPS = 1000
COSINE_S = 0.008
GUIDANCE_WEIGHT = 2.0
CONDITION_LAYERS = 2
TIME_TOKENS = 2


def cumulative_alphas(timesteps: int = TIMESTEPS, s: float = COSINE_S) -> Tensor:
    """Cosine schedule (Nichol & Dhariwal 2021, eq. 17), betas clipped at 0.999, f32 product."""
    t = torch.arange(timesteps + 1, dtype=torch.float64) / timesteps + s
    curve = torch.cos(t / (1 + s) * math.pi / 2).square()
    betas = (1 - curve[1:] / curve[:-1]).clamp(0, 0.999).float()
    return torch.cumprod(1.0 - betas, dim=0)


class StepEmbedding(nn.Module):
    """Sinusoidal embedding of the diffusion step: sines, then cosines."""

    rates: Tensor

    def __init__(self, channels: int) -> None:
        super().__init__()
        half = channels // 2
        rates = torch.exp(torch.arange(half) * -(math.log(10000.0) / (half - 1)))
        self.register_buffer("rates", rates, persistent=False)

    def forward(self, step: Tensor) -> Tensor:
        angles: Tensor = step.to(self.rates.dtype)[:, None] * self.rates
        return torch.cat([angles.sin(), angles.cos()], dim=-1)


class _LayerStack(nn.Module):
    def __init__(self, layers: list[FilmDecoderLayer]) -> None:
        super().__init__()
        self.stack = nn.ModuleList(layers)

    def forward(self, x: Tensor, memory: Tensor, embedding: Tensor) -> Tensor:
        for layer in self.stack:
            x = layer(x, memory, embedding)
        return x


class MotionDecoder(nn.Module):
    """Transformer that predicts the clean motion window from a noisy one."""

    def __init__(self, config: DittoConfig) -> None:
        super().__init__()
        latent, heads, hidden = config.latent_dims, config.lmdm_heads, 2 * config.latent_dims
        self.rotary = Rotary(latent)
        self.time_mlp = nn.Sequential(
            StepEmbedding(latent), nn.Linear(latent, 4 * latent), nn.Mish()
        )
        self.to_time_cond = nn.Sequential(nn.Linear(4 * latent, latent))
        self.to_time_tokens = nn.Sequential(nn.Linear(4 * latent, TIME_TOKENS * latent))
        self.null_cond_embed = nn.Parameter(torch.randn(1, config.sequence_frames, latent))
        self.null_cond_hidden = nn.Parameter(torch.randn(1, latent))
        self.norm_cond = nn.LayerNorm(latent)
        self.input_projection = nn.Linear(2 * config.motion_dims, latent)
        self.cond_encoder = nn.Sequential(
            *(EncoderLayer(latent, heads, hidden, self.rotary) for _ in range(CONDITION_LAYERS))
        )
        self.cond_projection = nn.Linear(config.condition_dims, latent)
        self.non_attn_cond_projection = nn.Sequential(
            nn.LayerNorm(latent), nn.Linear(latent, latent), nn.SiLU(), nn.Linear(latent, latent)
        )
        self.seqTransDecoder = _LayerStack(
            [
                FilmDecoderLayer(latent, heads, hidden, self.rotary)
                for _ in range(config.lmdm_layers)
            ]
        )
        self.final_layer = nn.Linear(latent, config.motion_dims)

    def decode(self, x: Tensor, step: Tensor, tokens: Tensor, hidden: Tensor) -> Tensor:
        """Denoises with given condition tokens [B, F, L] and pooled condition [B, L]."""
        time = self.time_mlp(step)
        embedding = self.to_time_cond(time) + hidden
        time_tokens = torch.unflatten(self.to_time_tokens(time), -1, (TIME_TOKENS, -1))
        memory = self.norm_cond(torch.cat([tokens, time_tokens], dim=1))
        return cast(Tensor, self.final_layer(self.seqTransDecoder(x, memory, embedding)))

    def guided(self, x: Tensor, previous: Tensor, condition: Tensor, step: Tensor) -> Tensor:
        """Classifier-free guidance; both branches run as one batch."""
        batch = x.shape[0]
        x = torch.cat([x, previous.unsqueeze(1).expand(-1, x.shape[1], -1)], dim=-1)
        x = self.input_projection(x)
        tokens = self.cond_encoder(self.cond_projection(condition))
        hidden = self.non_attn_cond_projection(tokens.mean(dim=1))
        tokens = torch.cat([self.null_cond_embed.expand(batch, -1, -1), tokens])
        hidden = torch.cat([self.null_cond_hidden.expand(batch, -1), hidden])
        both = self.decode(x.repeat(2, 1, 1), step.repeat(2), tokens, hidden)
        free, conditioned = both.chunk(2)
        return free + (conditioned - free) * GUIDANCE_WEIGHT


class Lmdm(nn.Module):
    """Noisy window [B, 80, 265], last motion [B, 265], conditions [B, 80, 1103] and step [B]
    -> predicted noise and clean window, both [B, 80, 265]."""

    noise_scale: Tensor
    start_scale: Tensor

    def __init__(self, config: DittoConfig) -> None:
        super().__init__()
        self.model = MotionDecoder(config)
        alphas = cumulative_alphas()
        self.register_buffer("noise_scale", torch.sqrt(1 / (1 - alphas)), persistent=False)
        self.register_buffer("start_scale", torch.sqrt(1 / alphas - 1), persistent=False)

    def forward(
        self, x: Tensor, previous: Tensor, condition: Tensor, step: Tensor
    ) -> tuple[Tensor, Tensor]:
        start = self.model.guided(x, previous, condition, step)
        noise_scale = self.noise_scale.index_select(0, step)[:, None, None]
        start_scale = self.start_scale.index_select(0, step)[:, None, None]
        noise = noise_scale * x - start / start_scale
        return noise, start
