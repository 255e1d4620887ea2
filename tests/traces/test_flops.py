from __future__ import annotations

import pytest
import torch
from torch.nn.functional import conv2d, conv_transpose2d
from torch.utils.flop_counter import FlopCounterMode

from perfproof.traces.flops import FORMULAS, Inputs, OddShapesError


def work(op, shapes, concrete=()):
    return FORMULAS[op][1](Inputs(shapes, ["float"] * len(shapes), concrete))


def test_gemm():
    found = work("aten::mm", [(3, 5), (5, 7)])
    assert (found.flops, found.elements) == (2 * 3 * 5 * 7, 15 + 35 + 21)
    biased = work("aten::addmm", [(7,), (3, 5), (5, 7)])
    assert (biased.flops, biased.elements) == (found.flops + 21, found.elements + 7)
    batched = work("aten::bmm", [(4, 3, 5), (4, 5, 7)])
    assert (batched.flops, batched.elements) == (4 * found.flops, 4 * found.elements)
    added = work("aten::baddbmm", [(4, 3, 7), (4, 3, 5), (4, 5, 7)])
    assert (added.flops, added.typed_by) == (4 * biased.flops, 1)


def test_attention():
    qkv = [(2, 3, 10, 8)] * 3
    flash = "aten::_scaled_dot_product_flash_attention"
    concrete = ["", "", "", "0.", "False", "False", "0.125"]
    full = work(flash, qkv, concrete)
    assert full.flops == 4 * 2 * 3 * 10 * 10 * 8
    assert full.elements == 4 * 2 * 3 * 10 * 8
    causal = work(flash, qkv, [*concrete[:4], "True"])
    assert causal.flops == 4 * 2 * 3 * (10 * 11 // 2) * 8
    efficient = "aten::_scaled_dot_product_efficient_attention"
    assert work(efficient, qkv, ["", "", "", "", "True", "0.", "False"]).flops == full.flops
    backward = work(f"{flash}_backward", [qkv[0], *qkv], ["" for _ in range(11)] + ["False"])
    assert backward.flops * 2 == full.flops * 5


def test_causal_with_other_numbers_of_keys():
    """Counted one by one: query i sees keys 0..i."""
    for queries, keys in ((5, 3), (3, 5), (4, 4)):
        pairs = sum(min(i + 1, keys) for i in range(queries))
        shapes = [(1, 1, queries, 8), (1, 1, keys, 8), (1, 1, keys, 8)]
        concrete = ["", "", "", "0.", "True"]
        flash = "aten::_scaled_dot_product_flash_attention"
        assert work(flash, shapes, concrete).flops == 4 * pairs * 8


def conv_arguments(stride, padding, dilation, transposed, extra, groups):
    return ["", "", "", *map(str, (stride, padding, dilation, transposed, extra)), str(groups)]


@pytest.mark.parametrize("groups", [1, 2])
@pytest.mark.parametrize(("stride", "padding", "dilation"), [(1, 0, 1), (2, 1, 1), (1, 2, 2)])
def test_convolution_like_pytorch_counts(stride, padding, dilation, groups):
    x = torch.zeros(2, 4, 9, 11, requires_grad=True)
    w = torch.zeros(6, 4 // groups, 3, 2, requires_grad=True)
    with FlopCounterMode(display=False) as counter:
        out = conv2d(x, w, None, stride, padding, dilation, groups)
    forward = counter.get_total_flops()
    shapes = [tuple(x.shape), tuple(w.shape), ()]
    arguments = conv_arguments([stride] * 2, [padding] * 2, [dilation] * 2, False, [0, 0], groups)
    found = work("aten::convolution", shapes, arguments)
    assert found.flops == forward
    assert found.elements == x.numel() + w.numel() + out.numel()
    with FlopCounterMode(display=False) as counter:
        out.sum().backward()
    arguments = ["", "", "", "[0]", *arguments[3:], "[True, True, False]"]
    back = work("aten::convolution_backward", [tuple(out.shape), *shapes[:2]], arguments)
    assert back.flops == 2 * forward
    # PyTorch's counter forgets the groups in the gradient of the weight.
    assert groups > 1 or back.flops == counter.get_total_flops()
    arguments[-1] = "[False, True, False]"
    first = work("aten::convolution_backward", [tuple(out.shape), *shapes[:2]], arguments)
    assert first.flops == forward


@pytest.mark.parametrize("groups", [1, 2])
def test_transposed_convolution_like_pytorch_counts(groups):
    x, w = torch.zeros(2, 4, 5, 6), torch.zeros(4, 6 // groups, 3, 3)
    with FlopCounterMode(display=False) as counter:
        out = conv_transpose2d(x, w, None, 2, 1, 1, groups)
    arguments = conv_arguments([2], [1], [1], True, [1], groups)
    found = work("aten::convolution", [tuple(x.shape), tuple(w.shape), ()], arguments)
    assert found.flops == counter.get_total_flops()
    assert found.elements == x.numel() + w.numel() + out.numel()


@pytest.mark.parametrize(
    ("op", "shapes", "concrete"),
    [
        ("aten::mm", [(3, 5)], []),
        ("aten::mm", [(3, 5), (6, 7)], []),
        ("aten::bmm", [(4, 3, 5), (5, 5, 7)], []),
        ("aten::mm", [(3, 5, 1), (5, 7)], []),
        ("aten::convolution", [(1, 3, 8, 8), (4, 3, 3, 3)], []),
        ("aten::_scaled_dot_product_flash_attention", [(1, 2, 3, 4)] * 3, []),
        ("aten::_scaled_dot_product_flash_attention", [(1, 2, 3, 4)] * 3, [""] * 4 + ["7"]),
    ],
)
def test_odd_shapes(op, shapes, concrete):
    with pytest.raises(OddShapesError):
        work(op, shapes, concrete)
