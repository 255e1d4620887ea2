from __future__ import annotations

import pytest
import torch
import torch.nn.functional as functional

from perfproof.training.embedded.orbit2.attention import attention_backends
from perfproof.training.embedded.orbit2.edm import precondition, residual_loss
from perfproof.training.embedded.orbit2.lines import short_count
from perfproof.training.embedded.orbit2.model import Attention, Denoiser
from perfproof.training.embedded.orbit2.settings import Architecture, Data

SIZES = Architecture(embed_dim=8, depth=2, heads=2, patch=2)
DATA = Data(height=4, width=8, scale=2, variables_in=4, variables_out=2)


def denoiser(recomputes: bool = False) -> Denoiser:
    torch.manual_seed(0)
    return Denoiser(SIZES, DATA, recomputes=recomputes)


def fields() -> tuple[torch.Tensor, torch.Tensor]:
    torch.manual_seed(1)
    return torch.randn(3, 4, 2, 4), torch.randn(3, 2, 4, 8)


def test_attention_is_the_textbook_formula_with_folded_heads() -> None:
    torch.manual_seed(0)
    layer, queries, context = Attention(8, 2), torch.randn(3, 1, 8), torch.randn(3, 5, 8)
    query = layer.query(queries).view(3, 1, 2, 4)
    key, value = (part.view(3, 5, 2, 4) for part in layer.key_value(context).chunk(2, -1))
    weights = torch.softmax(torch.einsum("bqhd,bkhd->bhqk", query, key) / 2.0, dim=-1)
    expected = layer.out(torch.einsum("bhqk,bkhd->bqhd", weights, value).reshape(3, 1, 8))
    torch.testing.assert_close(layer(queries, context), expected)


def test_attention_over_variables_folds_tokens_into_its_batch() -> None:
    seen = []
    model = denoiser()
    model.var_agg.register_forward_pre_hook(lambda _, given: seen.append(given[0].shape))
    low, high = fields()
    residual_loss(model, low, high, torch.Generator())
    assert seen == [(3 * 8, 1, 8)]


def test_tokens_return_to_their_place() -> None:
    model = denoiser()
    values = torch.arange(8 * 8.0).reshape(1, 8, 8)
    out = model._fields(values)
    assert out.shape == (1, 2, 4, 8)
    # Token 5 is row 1, column 1 of the grid; its second variable's upper right point.
    assert out[0, 1, 2, 3] == values[0, 5, 4 + 1]


def test_an_untrained_model_denoises_by_the_skip_connection() -> None:
    low, high = fields()
    sigma = torch.tensor([1e-4, 0.34, 1e4])
    condition = functional.interpolate(low, size=(4, 8), mode="bilinear")
    with torch.no_grad():
        model = denoiser()
        model.head.bias.zero_()
        found = precondition(model, high, condition, sigma)
    torch.testing.assert_close(found[0], high[0], rtol=1e-3, atol=1e-3)
    torch.testing.assert_close(found[1], 0.5 * high[1])
    assert found[2].abs().max() < 1e-3


def test_checkpointing_changes_no_gradient() -> None:
    gradients = []
    for recomputes in (False, True):
        model = denoiser(recomputes)
        torch.nn.init.normal_(model.head.weight)
        noise = torch.Generator().manual_seed(0)
        residual_loss(model, *fields(), noise).backward()  # type: ignore[no-untyped-call]
        gradients.append([p.grad for p in model.parameters()])
    torch.testing.assert_close(*gradients)


@pytest.mark.parametrize("setting", ["default", "math", "flash", "efficient+math"])
def test_every_backend_gives_the_same_attention(setting: str) -> None:
    torch.manual_seed(0)
    layer, tokens = Attention(8, 2), torch.randn(2, 5, 8)
    expected = layer(tokens, tokens)
    with attention_backends(setting):
        torch.testing.assert_close(layer(tokens, tokens), expected)


def test_counts_are_short() -> None:
    assert [short_count(n) for n in (999, 1500, 9_450_000, 2_000_000_000)] == [
        "999",
        "1.50K",
        "9.45M",
        "2.00G",
    ]
