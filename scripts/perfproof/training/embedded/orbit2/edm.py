"""Diffusion on the residual: what bilinear interpolation of the low-resolution field misses.

Noise levels, preconditioning and loss weight follow Karras et al., "Elucidating the Design Space of
Diffusion-Based Generative Models" (2022), table 1; the residual follows Mardani et al. (2023).
"""

from __future__ import annotations

import torch
import torch.nn.functional as functional
from torch import Tensor, nn

_MEAN_LOG_SIGMA, _SD_LOG_SIGMA = -1.2, 1.2
# Standard deviation of the generated residuals.
_SIGMA_DATA = 0.34


def residual_loss(model: nn.Module, low: Tensor, high: Tensor, noise: torch.Generator) -> Tensor:
    """Weighted denoising error, a float32 scalar.

    `low` (B, V_in, h, w) and `high` (B, V_out, H, W); `noise` is this rank's source of noise.
    """
    condition = functional.interpolate(
        low, size=high.shape[-2:], mode="bilinear", align_corners=False
    )
    residual = high - condition[:, : high.shape[1]]
    drawn = torch.randn(len(high), generator=noise, device=high.device)
    sigma = torch.exp(_MEAN_LOG_SIGMA + _SD_LOG_SIGMA * drawn)
    shaped = sigma.reshape(-1, 1, 1, 1)
    added = torch.randn(high.shape, generator=noise, device=high.device) * shaped
    noisy = residual + added.to(residual.dtype)
    denoised = precondition(model, noisy, condition, sigma)
    weight = (shaped**2 + _SIGMA_DATA**2) / (shaped * _SIGMA_DATA) ** 2
    return (weight * (denoised - residual.float()) ** 2).mean()


def precondition(model: nn.Module, noisy: Tensor, condition: Tensor, sigma: Tensor) -> Tensor:
    """Denoised residual in float32: skip connection plus scaled model output."""
    shaped = sigma.reshape(-1, 1, 1, 1)
    total = shaped**2 + _SIGMA_DATA**2
    skip, scale_out = _SIGMA_DATA**2 / total, shaped * _SIGMA_DATA / total.sqrt()
    scaled = (noisy.float() / total.sqrt()).to(noisy.dtype)
    output = model(scaled, condition, (sigma.log() / 4).to(noisy.dtype))
    denoised: Tensor = skip * noisy.float() + scale_out * output.float()
    return denoised
