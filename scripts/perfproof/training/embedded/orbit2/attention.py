"""Which attention backends PyTorch may use, and which one it does use."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

import torch
from torch.nn.attention import SDPBackend, sdpa_kernel

from perfproof.training.embedded.context import Context
from perfproof.training.embedded.orbit2.settings import Architecture, Data

_CHOICES = {
    "flash": [SDPBackend.FLASH_ATTENTION],
    "efficient": [SDPBackend.EFFICIENT_ATTENTION],
    "cudnn": [SDPBackend.CUDNN_ATTENTION],
    "math": [SDPBackend.MATH],
    "efficient+math": [SDPBackend.EFFICIENT_ATTENTION, SDPBackend.MATH],
}


@contextlib.contextmanager
def attention_backends(setting: str) -> Iterator[None]:
    """Restrict `scaled_dot_product_attention` to the recipe's `sdpa_backend`."""
    if setting == "default":
        yield
        return
    with sdpa_kernel(_CHOICES[setting]):
        yield


def realised_attention(context: Context) -> dict[str, str]:
    """The backends allowed now, and those PyTorch picks at the shapes of both attentions."""
    sizes = Architecture.model_validate(context.recipe.architecture)
    data = Data.model_validate(context.recipe.data)
    tokens = (data.height // sizes.patch) * (data.width // sizes.patch)
    batch = context.training.batch_size
    variables = data.variables_in + data.variables_out
    return {
        "sdpa_backends": "+".join(sorted(_allowed())),
        "sdpa_var_agg": _picked(context, sizes, batch * tokens, 1, variables),
        "sdpa_blocks": _picked(context, sizes, batch, tokens, tokens),
        "sdpa_var_agg_batch": str(batch * tokens),
    }


def _allowed() -> list[str]:
    flags: Any = torch.backends.cuda
    switches = {
        "flash": flags.flash_sdp_enabled(),
        "efficient": flags.mem_efficient_sdp_enabled(),
        "cudnn": flags.cudnn_sdp_enabled(),
        "math": flags.math_sdp_enabled(),
    }
    return [name for name, on in switches.items() if on]


def _picked(context: Context, sizes: Architecture, batch: int, queries: int, keys: int) -> str:
    """PyTorch's own choice for a training call at this shape."""
    width = sizes.embed_dim // sizes.heads
    query, key = (
        torch.empty(batch, sizes.heads, length, width, device=context.device, dtype=context.dtype)
        for length in (queries, keys)
    )
    choice = torch._fused_sdp_choice(query.requires_grad_(), key, key)
    return str(SDPBackend(choice).name).removesuffix("_ATTENTION").lower()
