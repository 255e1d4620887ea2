"""The kernel groups of the vocabulary: names and patterns. Data; nothing is computed here."""

from __future__ import annotations

from perfproof.claims.metrics_trace import COMM_NAME_REGEX, MEMCPY_KERNEL_REGEX

# Inductor names a fused kernel after all it contains: `triton_poi_fused_addmm_gelu` has no GEMM.
_WHOLE = r"^(?!triton_(?:poi|red|per)_)"
# Functors inside these kernels' template arguments would match almost any other group.
_SINGLE = r"^(?!.*(?:multi_tensor_apply|adam|radix_?sort|merge_?sort|bitonic))"

_CONVOLUTION = (
    r"igemm_|implicit_?gemm|convol|conv[123]d|conv_(?:fwd|bwd|depthwise)|naive_conv|sp3asmconv"
    r"|fprop|dgrad|wgrad|scudnn|winograd|im2d?2?col|col2im|cask_cudnn|cudnn::cnn"
)
_ATTENTION = "attention|attn|fmha|flash|sdpa|compute_dot_do_o|convert_dq_to_16bits"
_GEMM = (
    "(?<!fb)gemm|gemv|nvjet_|cijk_|matmul|splitkreduce|wvsplitk|cutlass|magma_|epilogue::impl"
    "|triton_(?:tem|mm|bmm)_"
)

# By a kernel's name, case-insensitive, in order: the first group whose pattern is found.
KERNEL_GROUPS: dict[str, str] = {
    "comm": COMM_NAME_REGEX,
    "memcpy": MEMCPY_KERNEL_REGEX,
    "memset": "^__amd_rocclr_fillBuffer",
    "gemm": rf"{_WHOLE}(?!.*(?:{_CONVOLUTION}|{_ATTENTION})).*(?:{_GEMM})",
    "attention": rf"{_WHOLE}(?!.*(?:reshape_and_cache|rotary)).*(?:{_ATTENTION})",
    "convolution": rf"{_WHOLE}.*(?:{_CONVOLUTION})",
    "normalization": (
        r"^(?!triton_poi_).*(?:(?:batch|layer|group|instance|rms)_?norm|bn_(?:fw|bw)_"
        r"|gammabetabackward|rowwisemoments|compute\w*fusedparams|computeinternalgradients)"
    ),
    "reduction": (
        rf"{_SINGLE}(?!triton_poi_)(?!.*scatter_gather).*(?:reduce|softmax|triton_(?:red|per)_|argm(?:ax|in)"
        r"|cunn_|nll_loss|scan|cum(?:sum|prod)|histogram|_sum_|sum_kernel|dot_kernel)"
    ),
    "scatter_gather": (
        rf"{_SINGLE}(?!triton_poi_)(?!.*(?:with_index|upsample)).*(?:scatter|gather|index|indices|(?<!rotary_)embedding"
        r"|permute_|segment|searchsorted|reshape_and_cache)"
    ),
    "elementwise": (
        rf"{_SINGLE}.*(?:elementwise|triton_poi_|pointwise|dropout|catarray|transpose"
        r"|nchwtonhwc|nhwctonchw|tensortransform|tensorop|scalepackedtensor|scal_kernel|rotary|quantize"
        r"|fill|copy|act_and_mul|upsample|kernel_with_index)"
    ),
    "optimizer": "multi_tensor_apply|adam|fused_optim|amp_update_scale",
    "sort": r"(?:radix|merge|bitonic)_?sort|\bsort|_sort|sortkv|topk|deviceselect|unique",
}
# What no pattern finds.
OTHER_KERNELS = "other"
# Groups that claims about a group of kernels cannot be about: other metrics are.
NO_COMPUTE_GROUPS = ("comm", "memcpy", "memset")
