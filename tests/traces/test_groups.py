from __future__ import annotations

import re

import pytest

from perfproof.traces import groups

# Names as profilers recorded them, cut where the rest says nothing more.
RECORDED = {
    "comm": [
        "ncclKernel_SendRecv_RING_SIMPLE_Sum_int8_t(ncclWorkElem)",
        "ncclDevKernel_AllReduce_Sum_f64_RING_LL(ncclDevKernelArgsStorage<4096ul>)",
        "ncclDevKernel_ReduceScatter_Sum_bf16_RING_LL(ncclDevKernelArgsStorage<4096ul>)",
        "ncclDevKernel_Generic(ncclDevKernelArgsStorage<4096ul>)",
        "void rcclGenericKernel<1, false>(ncclDevKernelArgsStorage<4096ul>)",
        "void vllm::cross_device_reduce_1stage<__hip_bfloat16, 8>(...)",
        "multimem_all_reduce_kernel<c10::BFloat16>",
        "two_shot_all_reduce_kernel",
        "mscclpp::allreduce7",
        "deep_ep::intranode::dispatch",
        "nvshmemi_transfer",
    ],
    "memcpy": [
        "__amd_rocclr_copyBuffer",
        "__amd_rocclr_copyBufferRectAligned.kd",
        "MEMORY_COPY_HOST_TO_DEVICE",
        "Memcpy DtoD (Device -> Device)",
    ],
    "memset": ["__amd_rocclr_fillBufferAligned"],
    "gemm": [
        "Cijk_Alik_Bljk_BBS_BH_Bias_HA_S_SAV_UserArgs_MT320x224x64_MI16x16x1_SN_LDSB0_AFC1",
        "nvjet_sm90_tst_256x128_64x4_1x2_h_bz_coopA_bias_TNT",
        "sm80_xmma_gemm_f32f32_f32f32_f32_tn_n_tilesize128x128x8_stage3__5x_cublas",
        "sm90_xmma_gemm_f64f64_f64f64_f64_nn_n_tilesize64x128x16_stage3__5x_cublas",
        "void cutlass::Kernel2<cutlass_80_simt_sgemm_128x256_8x4_nt_align1>(Params)",
        "void cutlass::Kernel2<cutlass_80_tensorop_d884gemm_64x32_16x4_tn_align1>(Params)",
        "volta_sgemm_128x32_nt",
        "std::enable_if<true, void>::type internal::gemvx::kernel<int, int, float, float>",
        "void gemmk1_kernel<int, float, 256, 5, false, false, false, false>",
        "void gemv2N_kernel<int, int, float, float, float, float, 128, 1, 4, 4, 1, false>",
        "magma_sgemmEx_kernel<float, true, false>",
        "void splitKreduce_kernel<32, 16, int, float, float, float, float, true>",
        "_matmul_ogs_NNT_bf16xbf16xmxfp4_16x128x256x1",
        "triton_tem_fused_addmm_3",
    ],
    "attention": [
        "cudnn_generated_fort_native_sdpa_sm90_flash_fprop_wgmma_f16_knob_7_64x128x64",
        "cudnn_generated_fort_native_sdpa_sm90_flash_bprop_wgmma_f16_knob_26_64x64x64",
        "fmha_cutlassF_f32_aligned_64x64_rf_sm80(PyTorchMemEffAttention::AttentionKernel<float>)",
        "fmha_cutlassB_f32_aligned_64x64_k64_dropout_sm80(PyTorchMemEffAttention::...)",
        "attn_fwd",
        "void cudnn::fusion::compute_dot_do_o_specialized<true, 64>(void const*)",
        "void pytorch_flash::flash_fwd_kernel<Flash_fwd_kernel_traits<64, 128, cutlass::half_t>>",
        "kernel_unified_attention_3d",
    ],
    "convolution": [
        "igemm_fwd_gtcx3_nhwc_bf16_bx0_ex1_bt128x256x32_wt32x32x8_ws1x2_wr2x2",
        "igemm_wrw_gtcx2_nhwc_bf16_bx0_ex1_bt64x64x64_wt32x32x8",
        "void implicit_convolve_sgemm<float, float, 1024, 6, 7, 3, 3, 5, 1, false>",
        "sm90_xmma_wgrad_indexed_implicit_gemm_bf16bf16_bf16f32_f32_nhwckrsc_nhwc__5x_cudnn",
        "sm80_xmma_fprop_implicit_gemm_f32f32_f32f32_f32_nchwkcrs_nchw_tilesize32x32x8",
        "volta_scudnn_128x128_stridedB_splitK_small_nn_v1",
        "void cudnn::detail::dgrad_engine<float, 512, 6, 5, 3, 3, 3, false>",
        "void cudnn::winograd_nonfused::winogradForwardOutput4x4<float, float>",
        "_ZN19cutlass_cudnn_train6KernelINS_4conv6kernel23ImplicitGemmConvolutionINS1_11",
        "_ZN2ck16tensor_operation6device12_GLOBAL__N_139kernel_grouped_conv_fwd_xdl_cshuffle_v3"
        "INS_34GridwiseGemmMultiD_xdl_cshuffle_v3",
        "miopenSp3AsmConv_v30_3_1_gfx94x_fp32_f3x2_stride1",
        "Im2d2Col_v2",
    ],
    "normalization": [
        "void cudnn::bn_bw_1C11_kernel_new<float, float, float2, 512, true, 1>",
        "void at::native::(anonymous namespace)::vectorized_layer_norm_kernel<float, float>",
        "void at::native::(anonymous namespace)::GammaBetaBackwardCUDAKernelTemplate<float>",
        "void at::native::batch_norm_backward_kernel<c10::BFloat16, c10::BFloat16, float, int>",
        "_ZN7ck_tile6kentryILi1ENS_12Rmsnorm2dFwdINS_27Rmsnorm2dFwdPipelineOnePass",
        "triton_red_fused_add_addmm_mul_native_layer_norm_split_unsqueeze_view_16",
    ],
    "reduction": [
        "void at::native::reduce_kernel<512, 1, at::native::ReduceOp<float, sum_functor<float>>>",
        "void at::native::(anonymous namespace)::cunn_SoftMaxForward<8, c10::BFloat16, float>",
        "void at::native::(anonymous namespace)::softmax_warp_forward<float, float, float, 8>",
        "void cub::DeviceScanKernel<cub::AgentScanPolicy<128, 15, int>>",
        "triton_per_fused__to_copy_add_addmm_mean_mul_pow_rsqrt_transpose_view_8",
    ],
    "scatter_gather": [
        "void at::native::_scatter_gather_elementwise_kernel<128, 8, _cuda_scatter_gather_internal"
        "_kernel<true, double, long>::operator()<ReduceAdd>>",
        "void at::native::vectorized_gather_kernel<16, long>(char*, char*, long*, int)",
        "void at::native::index_elementwise_kernel<128, 4, at::native::gpu_index_kernel<...>>",
        "void (anonymous namespace)::indexing_backward_kernel<double, 4>(long const*)",
        "void split_embedding_backward_codegen_rowwise_adagrad_unweighted_kernel_cta_per_row_1"
        "<c10::Half>(fbgemm_gpu::FixedDivisor)",
        "vllm::reshape_and_cache_flash_kernel<__hip_bfloat16, __hip_bfloat16>",
    ],
    "elementwise": [
        "void at::native::vectorized_elementwise_kernel<4, at::native::CUDAFunctor_add<float>>",
        "void at::native::elementwise_kernel<128, 2, at::native::direct_copy_kernel_cuda>",
        "void at::native::(anonymous namespace)::CatArrayBatchedCopy<OpaqueType<2u>, unsigned int>",
        "triton_poi_fused_addmm_gelu_view_15",
        "triton_poi_fused__scaled_dot_product_flash_attention_cat_transpose_view_10",
        "batched_transpose_32x32_half",
        "SubTensorOpWithScalar1d",
        "void tensorTransformGeneric<float, float, float, true, false, false>",
        "void vllm::rotary_embedding_kernel<c10::BFloat16, true>",
    ],
    "optimizer": [
        "void at::native::(anonymous namespace)::multi_tensor_apply_kernel<TensorListMetadata<4>, "
        "FusedAdamMathFunctor<float, 4>>",
        "void at::native::(anonymous namespace)::multi_tensor_apply_kernel<TensorListMetadata<1>, "
        "LpNormFunctor<float, NormType::L2>, at::native::Copy<float>>",
    ],
    "sort": [
        "void cub::DeviceRadixSortOnesweepKernel<cub::DeviceRadixSortPolicy<long, int, int>>",
        "void at_cuda_detail::cub::detail::radix_sort::DeviceRadixSortExclusiveSumKernel<...>",
        "_topk_forward",
    ],
    "other": [
        "void at::native::(anonymous namespace)::max_pool_backward_nchw<float, float>(int)",
        "compute_cuda_kernel",
    ],
}
CASES = [(group, name) for group, names in RECORDED.items() for name in names]


@pytest.mark.parametrize(("group", "name"), CASES)
def test_recorded_names(group, name):
    assert groups.group_of(name) == group


@pytest.mark.parametrize(("group", "name"), CASES)
def test_the_published_patterns_select_the_same_kernels(group, name):
    """What a reader of `kernel_groups.csv` computes from its two columns."""
    if group in ("comm", "memcpy", "memset"):
        assert (groups.GROUPS[group], groups.not_regex(group)) == ("", "")
        return
    flags = re.IGNORECASE
    chosen = [
        each
        for each in groups.NAMES
        if each not in ("comm", "memcpy", "memset")
        and re.search(groups.GROUPS[each], name, flags)
        and not re.search(groups.not_regex(each), name, flags)
    ]
    assert chosen == [group]


def test_implicit_gemm_is_convolution_and_collectives_are_no_reduction():
    """An earlier tool counted igemm as GEMM and RCCL's AllReduce as an element-wise reduce."""
    assert groups.group_of("igemm_bwd_gtcx3_nhwc_bf16_bx0_ex1_bt32x128x32") == "convolution"
    for collective in ("AllReduce", "ReduceScatter"):
        assert groups.group_of(f"ncclDevKernel_{collective}_Sum_bf16_RING_LL(...)") == "comm"
        assert groups.group_of(f"rcclDevKernel_{collective}") == "comm"


def test_order_is_the_documented_one():
    assert groups.NAMES == (
        "comm",
        "memcpy",
        "memset",
        "gemm",
        "attention",
        "convolution",
        "normalization",
        "reduction",
        "scatter_gather",
        "elementwise",
        "optimizer",
        "sort",
        "other",
    )
