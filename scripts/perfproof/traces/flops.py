"""Floating-point operations and least bytes of GEMM, convolution and attention, from shapes.

A multiply and an add are two operations. Sources: the definitions of the operations in PyTorch's
documentation; for the backward of attention that of FlashAttention-2 (Dao, 2023, section 4.1): five
matrix products, of which one is the recomputed score matrix. Bytes: every operand read once and
every result written once, which is the least that device memory must move.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import prod
from typing import NamedTuple

Shape = tuple[int, ...]


class OddShapesError(ValueError):
    """Shapes or arguments that the operation cannot have, or that do not say enough."""


@dataclass(frozen=True)
class Inputs:
    """Arguments of an operation as the profiler recorded them, by position.

    A tensor has a shape and a type; for other arguments the shape is empty. `concrete` holds
    scalars and lists as text where they were recorded.
    """

    shapes: Sequence[Shape]
    types: Sequence[str]
    concrete: Sequence[str]

    def shape(self, at: int, rank: int | None = None) -> Shape:
        """Shape of a tensor argument; `rank` is the number of dimensions it must have."""
        found = self.shapes[at] if at < len(self.shapes) else ()
        if not found or (rank is not None and len(found) != rank):
            raise OddShapesError(f"argument {at} has shape {list(found)}")
        return found

    def text(self, at: int) -> str:
        """A scalar argument as text."""
        found = self.concrete[at] if at < len(self.concrete) else ""
        if not found:
            raise OddShapesError(f"argument {at} is not recorded")
        return found

    def flag(self, at: int) -> bool:
        """A bool argument."""
        text = self.text(at)
        if text not in ("True", "False"):
            raise OddShapesError(f"argument {at} is '{text}'")
        return text == "True"

    def ints(self, at: int, length: int) -> list[int]:
        """A list argument; one number stands for all dimensions."""
        found = [int(number) for number in re.findall(r"-?\d+", self.text(at))]
        if len(found) == 1:
            found *= length
        if len(found) != length:
            raise OddShapesError(f"argument {at} is '{self.text(at)}'")
        return found


class Work(NamedTuple):
    """What one call must do: operations, elements it must move, the argument that has its type."""

    flops: int
    elements: int
    typed_by: int


Formula = Callable[[Inputs], Work]


def _mm(inputs: Inputs, first: int = 0, bias: bool = False) -> Work:
    """2·M·N·K, and M·N for the bias: [M, K] x [K, N]."""
    (m, k), (inner, n) = inputs.shape(first, 2), inputs.shape(first + 1, 2)
    _same(k, inner)
    added = m * n if bias else 0
    size = prod(inputs.shape(0)) if bias else 0
    return Work(2 * m * n * k + added, m * k + k * n + m * n + size, first)


def _bmm(inputs: Inputs, first: int = 0, bias: bool = False) -> Work:
    """B times that of `mm`: [B, M, K] x [B, K, N]."""
    (b, m, k), (batch, inner, n) = inputs.shape(first, 3), inputs.shape(first + 1, 3)
    _same(k, inner)
    _same(b, batch)
    added = b * m * n if bias else 0
    size = prod(inputs.shape(0)) if bias else 0
    return Work(2 * b * m * n * k + added, b * (m * k + k * n + m * n) + size, first)


class _Convolution(NamedTuple):
    """Sizes of a convolution: elements of input, weight and output, and operations of one pass."""

    input: int
    weight: int
    output: int
    channels_out: int
    flops: int


def _convolution_sizes(inputs: Inputs, at: int, stride: int) -> _Convolution:
    """Input and weight are arguments `at` and `at`+1; arguments from `stride` on say the rest.

    2·N·C_out·prod(out)·(C_in/groups)·prod(kernel); transposed, the same with input for output.
    """
    x, w = inputs.shape(at), inputs.shape(at + 1)
    dims = len(x) - 2
    if dims < 1 or len(w) != len(x):
        raise OddShapesError(f"input {list(x)}, weight {list(w)}")
    steps, padding, dilation = (inputs.ints(stride + i, dims) for i in range(3))
    transposed, groups = inputs.flag(stride + 3), inputs.ints(stride + 5, 1)[0]
    if transposed:
        extra = inputs.ints(stride + 4, dims)
        _same(x[1], w[0])
        out = [
            (size - 1) * s - 2 * p + d * (k - 1) + e + 1
            for size, s, p, d, k, e in zip(
                x[2:], steps, padding, dilation, w[2:], extra, strict=True
            )
        ]
        channels = w[1] * groups
        flops = 2 * prod(x) * w[1] * prod(w[2:])
    else:
        _same(x[1], w[1] * groups)
        out = [
            (size + 2 * p - d * (k - 1) - 1) // s + 1
            for size, s, p, d, k in zip(x[2:], steps, padding, dilation, w[2:], strict=True)
        ]
        channels = w[0]
        flops = 2 * x[0] * channels * prod(out) * w[1] * prod(w[2:])
    if min(out) < 1:
        raise OddShapesError(f"output {out}")
    return _Convolution(prod(x), prod(w), x[0] * channels * prod(out), channels, flops)


def _convolution(inputs: Inputs) -> Work:
    """One pass, and an addition for each output where there is a bias."""
    sizes = _convolution_sizes(inputs, 0, 3)
    bias = bool(len(inputs.shapes) > 2 and inputs.shapes[2])
    flops = sizes.flops + (sizes.output if bias else 0)
    moved = sizes.input + sizes.weight + sizes.output + (sizes.channels_out if bias else 0)
    return Work(flops, moved, 0)


def _convolution_backward(inputs: Inputs) -> Work:
    """One pass for each of the gradients of input and weight that the output mask asks for."""
    sizes = _convolution_sizes(inputs, 1, 4)
    wanted = re.findall("True|False", inputs.text(10))
    if len(wanted) != 3:
        raise OddShapesError(f"output mask '{inputs.text(10)}'")
    of_input, of_weight, of_bias = (text == "True" for text in wanted)
    flops = sizes.flops * (of_input + of_weight) + sizes.output * of_bias
    read = sizes.output + sizes.weight * of_input + sizes.input * of_weight
    written = sizes.input * of_input + sizes.weight * of_weight + sizes.channels_out * of_bias
    return Work(flops, read + written, 0)


class _Attention(NamedTuple):
    pairs: int  # of a query and a key that count, over batch and heads
    qk: int  # length of a query
    v: int  # length of a value
    q_elements: int
    kv_elements: int
    out_elements: int


def _attention_sizes(inputs: Inputs, first: int, causal: int) -> _Attention:
    """Queries, keys and values from argument `first` on: [batch, heads, length, width]."""
    q, k, v = (inputs.shape(first + i, 4) for i in range(3))
    _same(q[3], k[3])
    _same(k[2], v[2])
    _same(q[0], k[0])
    each = q[2] * k[2]
    if inputs.flag(causal):
        # Query i sees keys 0..i.
        square = min(q[2], k[2])
        each = square * (square + 1) // 2 + (q[2] - square) * k[2]
    heads = q[0] * q[1]
    return _Attention(heads * each, q[3], v[3], prod(q), prod(k) + prod(v), heads * q[2] * v[3])


def _attention(first: int, causal: int) -> Formula:
    """Two products: scores and weighted values, 2·pairs·(D_qk + D_v). Softmax is left out."""

    def formula(inputs: Inputs) -> Work:
        sizes = _attention_sizes(inputs, first, causal)
        moved = sizes.q_elements + sizes.kv_elements + sizes.out_elements
        return Work(2 * sizes.pairs * (sizes.qk + sizes.v), moved, first)

    return formula


def _attention_backward(first: int, causal: int) -> Formula:
    """Five products: 2·pairs·(3·D_qk + 2·D_v)."""

    def formula(inputs: Inputs) -> Work:
        sizes = _attention_sizes(inputs, first, causal)
        moved = 2 * (sizes.q_elements + sizes.kv_elements + sizes.out_elements)
        return Work(2 * sizes.pairs * (3 * sizes.qk + 2 * sizes.v), moved, first)

    return formula


def _same(one: int, other: int) -> None:
    if one != other:
        raise OddShapesError(f"{one} is not {other}")


# Operation, its category, its formula. Numbers are places in the operation's signature.
FORMULAS: dict[str, tuple[str, Formula]] = {
    "aten::mm": ("GEMM", _mm),
    "aten::_scaled_mm": ("GEMM", _mm),
    "aten::addmm": ("GEMM", lambda inputs: _mm(inputs, 1, True)),
    "aten::bmm": ("GEMM", _bmm),
    "aten::baddbmm": ("GEMM", lambda inputs: _bmm(inputs, 1, True)),
    "aten::convolution": ("CONV_fwd", _convolution),
    "aten::convolution_backward": ("CONV_bwd", _convolution_backward),
    "aten::_scaled_dot_product_flash_attention": ("SDPA_fwd", _attention(0, 4)),
    "aten::_scaled_dot_product_efficient_attention": ("SDPA_fwd", _attention(0, 6)),
    "aten::_scaled_dot_product_cudnn_attention": ("SDPA_fwd", _attention(0, 6)),
    "aten::_scaled_dot_product_flash_attention_backward": ("SDPA_bwd", _attention_backward(1, 11)),
    "aten::_scaled_dot_product_efficient_attention_backward": (
        "SDPA_bwd",
        _attention_backward(1, 11),
    ),
    "aten::_scaled_dot_product_cudnn_attention_backward": ("SDPA_bwd", _attention_backward(1, 14)),
}
