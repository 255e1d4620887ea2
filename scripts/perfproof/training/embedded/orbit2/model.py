"""The denoiser: attention over variables at each token, then a transformer over tokens."""

from __future__ import annotations

import math
from typing import cast

import torch
import torch.nn.functional as functional
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint

from perfproof.training.embedded.orbit2.settings import Architecture, Data


class Attention(nn.Module):
    """Multi-head attention of queries (B, Q, D) over a context (B, K, D)."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.query = nn.Linear(width, width)
        self.key_value = nn.Linear(width, 2 * width)
        self.out = nn.Linear(width, width)

    def forward(self, queries: Tensor, context: Tensor) -> Tensor:
        """Attended queries (B, Q, D)."""
        key, value = self.key_value(context).chunk(2, dim=-1)
        mixed = functional.scaled_dot_product_attention(
            self._heads(self.query(queries)), self._heads(key), self._heads(value)
        )
        return cast(Tensor, self.out(mixed.transpose(1, 2).flatten(2)))

    def _heads(self, part: Tensor) -> Tensor:
        batch, length, width = part.shape
        return part.view(batch, length, self.heads, width // self.heads).transpose(1, 2)


class Block(nn.Module):
    """A transformer block whose scale and shift follow the noise level."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.attention = Attention(width, heads)
        self.mlp = nn.Sequential(
            nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width)
        )
        self.modulation = nn.Linear(width, 2 * width)

    def forward(self, tokens: Tensor, noise: Tensor) -> Tensor:
        """New tokens (B, L, D); `noise` (B, D) embeds the noise level."""
        scale, shift = self.modulation(noise).unsqueeze(1).chunk(2, dim=-1)
        inner = self.norm1(tokens) * (1 + scale) + shift
        tokens = tokens + self.attention(inner, inner)
        return cast(Tensor, tokens + self.mlp(self.norm2(tokens)))


class Denoiser(nn.Module):
    """Predicts fields (B, V_out, H, W) from noisy ones, conditioning fields and a noise level."""

    def __init__(self, sizes: Architecture, data: Data, *, recomputes: bool = False) -> None:
        """`recomputes`: keep only the blocks' inputs and recompute the rest in backward."""
        super().__init__()
        width, patch = sizes.embed_dim, sizes.patch
        self.out_variables = data.variables_out
        self.variables = data.variables_in + data.variables_out
        self.patch, self.grid = patch, (data.height // patch, data.width // patch)
        self.recomputes = recomputes
        self.embed = nn.Conv2d(
            self.variables, self.variables * width, patch, stride=patch, groups=self.variables
        )
        self.variable_embed = nn.Parameter(0.02 * torch.randn(self.variables, width))
        self.variable_query = nn.Parameter(0.02 * torch.randn(1, 1, width))
        self.var_agg = Attention(width, sizes.heads)
        self.position = nn.Parameter(0.02 * torch.randn(1, self.grid[0] * self.grid[1], width))
        self.noise = nn.Sequential(nn.Linear(width, width), nn.SiLU(), nn.Linear(width, width))
        self.blocks = nn.ModuleList(Block(width, sizes.heads) for _ in range(sizes.depth))
        self.norm = nn.LayerNorm(width)
        self.head = nn.Linear(width, self.out_variables * patch * patch)
        # The untrained model then denoises by the skip connection alone.
        nn.init.zeros_(self.head.weight)

    def forward(self, noisy: Tensor, condition: Tensor, noise_level: Tensor) -> Tensor:
        """`noisy` (B, V_out, H, W), `condition` (B, V_in, H, W), `noise_level` (B,)."""
        tokens = self.aggregate(torch.cat([condition, noisy], dim=1)) + self.position
        noise = self.noise(wave_embedding(noise_level, tokens.shape[-1]))
        for block in self.blocks:
            if self.recomputes:
                tokens = checkpoint(block, tokens, noise, use_reentrant=False)
            else:
                tokens = block(tokens, noise)
        return self._fields(self.head(self.norm(tokens)))

    def aggregate(self, fields: Tensor) -> Tensor:
        """One token a patch (B, L, D) from one a patch and variable.

        Patches are folded into the attention's batch, which is B x L: far larger than the batch.
        """
        batch, width = fields.shape[0], self.variable_query.shape[-1]
        parts = self.embed(fields).reshape(batch, self.variables, width, -1)
        tokens = parts.permute(0, 3, 1, 2) + self.variable_embed
        folded = tokens.reshape(-1, self.variables, width)
        queries = self.variable_query.expand(folded.shape[0], -1, -1)
        picked = cast(Tensor, self.var_agg(queries, folded)).squeeze(1)
        mixed: Tensor = picked + folded.sum(dim=1) / self.variables**0.5
        return mixed.reshape(batch, -1, width)

    def _fields(self, values: Tensor) -> Tensor:
        """(B, L, V p p) back to (B, V, H, W)."""
        rows, columns = self.grid
        variables, patch = self.out_variables, self.patch
        parts = values.reshape(-1, rows, columns, variables, patch, patch)
        rows_first = parts.permute(0, 3, 1, 4, 2, 5)
        return rows_first.reshape(-1, variables, rows * patch, columns * patch)


def wave_embedding(level: Tensor, width: int) -> Tensor:
    """Sines and cosines (B, width) of a scalar (B,)."""
    half = width // 2
    steps = torch.arange(half, device=level.device, dtype=torch.float32)
    angles = level.float().unsqueeze(-1) * torch.exp(-math.log(1000.0) * steps / half)
    waves = torch.cat([torch.sin(angles), torch.cos(angles)], dim=-1)
    return functional.pad(waves, (0, width - 2 * half)).to(level.dtype)
