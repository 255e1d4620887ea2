from __future__ import annotations

import pytest

from perfproof.traces.categories import category


@pytest.mark.parametrize(
    ("op", "group", "expected"),
    [
        ("aten::mm", "gemm", "GEMM"),
        ("aten::addmm", "gemm", "GEMM"),
        ("aten::baddbmm", "elementwise", "GEMM"),
        ("aten::_scaled_mm", "gemm", "GEMM"),
        ("aten::convolution_backward", "gemm", "CONV_bwd"),
        ("aten::cudnn_convolution", "other", "CONV_fwd"),
        ("aten::native_layer_norm", "normalization", "NORM_fwd"),
        ("aten::cudnn_batch_norm_backward", "other", "NORM_bwd"),
        ("aten::_scaled_dot_product_cudnn_attention_backward", "attention", "SDPA_bwd"),
        ("aten::_flash_attention_forward", "attention", "SDPA_fwd"),
        ("aten::_foreach_add_", "optimizer", "multi_tensor_apply"),
        ("triton_poi_fused_addmm_gelu_15", "elementwise", "triton"),
        ("record_param_comms", "comm", "record_param_comms"),
        ("aten::add_", "elementwise", "elementwise"),
        ("aten::copy_", "memcpy", "memcpy"),
        ("aten::copy_", "elementwise", "elementwise"),
        ("aten::sum", "reduction", "reduce"),
        ("aten::index_select", "scatter_gather", "scatter_gather"),
        ("aten::sort", "sort", "sort"),
        ("MyFunctionBackward", "convolution", "CONV_bwd"),
        ("aten::max_pool2d", "other", "other"),
        ("aten::_addmv_impl_", "gemm", "GEMM"),
        ("aten::linalg_vector_norm", "reduction", "reduce"),
    ],
)
def test_category(op, group, expected):
    assert category(op, group) == expected
