from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from perfproof.traces.columns import read_trace
from perfproof.traces.names import normal_form

SAME = [
    ("triton_poi_fused_add_relu_0", "triton_poi_fused_add_relu_12"),
    ("triton_red_fused_mean_3", "triton_red_fused_mean_7"),
    ("triton__0d1d2d3de", "triton__0d1d2de3d"),
    ("my_softmax_kernel_0d1d2d3de4", "my_softmax_kernel_0d1d2c3d4"),
    ("attn_fwd.kd", "attn_fwd"),
    ("gemm_kernel [clone .kd]", "gemm_kernel"),
    ("void f<0x7f00aa10>(int)", "void f<0x55001122>(int)"),
    ("void (anonymous namespace)::k<4>(int)", "void <unnamed>::k<4>(int)"),
    (
        "_GLOBAL__N__8f3a9bd1_17_ReduceOps_cu_4fa1be22::k",
        "_GLOBAL__N__00c0ffee_17_ReduceOps_cu_9d55ab00::k",
    ),
    ("void k<4>(int,  float)", "void k<4>(int, float)"),
    ("fused_9f86d081884c7d659a2feaa0c55ad015", "fused_0a1b2c3d4e5f60718293a4b5c6d7e8f9"),
]
DIFFERENT = [
    ("volta_sgemm_64x64_nt", "volta_sgemm_128x64_nt"),
    ("void k<128, 6>(int)", "void k<128, 7>(int)"),
    ("triton_poi_fused_add_0", "triton_poi_fused_mul_0"),
    ("triton_poi_fused_add_0", "triton_red_fused_add_0"),
    ("nvjet_tst_128x8_64x12_1x1_h_bz_TNT", "nvjet_tst_128x8_64x12_2x1_h_bz_TNT"),
    ("Cijk_Ailk_Bljk_BBS_MT16x16x128", "Cijk_Ailk_Bljk_BBS_MT32x16x128"),
    ("ncclDevKernel_AllReduce_Sum_f32_RING_LL", "ncclDevKernel_AllReduce_Sum_f32_TREE_LL"),
]


@pytest.mark.parametrize(("one", "other"), SAME)
def test_the_same_kernel(one, other):
    assert normal_form(one) == normal_form(other)


@pytest.mark.parametrize(("one", "other"), DIFFERENT)
def test_different_kernels(one, other):
    assert normal_form(one) != normal_form(other)


@given(st.text(max_size=200))
def test_of_a_normal_form_is_itself(name):
    once = normal_form(name)
    assert normal_form(once) == once


def test_recorded_kernels_stay_apart(shared_data):
    path = shared_data / "traces" / "tracelens" / "mi300_resnet_act_checkpoint.json.gz"
    trace = read_trace(path, path.name)
    kernels = {trace.names[at] for at in trace.gpu.name.tolist()}
    assert len({normal_form(name) for name in kernels}) == len(kernels)
