"""Kernel groups: which regular expression puts a kernel where. First match wins, in order.

Every pattern is for `re.search`, case-insensitive, on the kernel's full name. The tests hold the
patterns against names recorded on NVIDIA and AMD devices.
"""

from __future__ import annotations

import re
from functools import cache

COMM = (
    "nccl|rccl|cross_device_reduce|multimem_all_reduce|two_shot_all_reduce|one_shot_all_reduce"
    "|all_reduce_kernel|mscclpp|deep_ep|nvshmem"
)
# Copies and fills that old ROCm files record as kernels.
MEMCPY = r"^(?:__amd_rocclr_copyBuffer|MEMORY_COPY_|Memcpy )"
MEMSET = r"^__amd_rocclr_fillBuffer"

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

GROUPS: dict[str, str] = {
    "comm": "",
    "memcpy": "",
    "memset": "",
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
    "other": "",
}
NAMES = tuple(GROUPS)
INDEX = {name: index for index, name in enumerate(NAMES)}


@cache
def patterns() -> dict[str, re.Pattern[str]]:
    """Compiled patterns of the groups that names decide, comm, memcpy and memset included."""
    texts = {**GROUPS, "comm": COMM, "memcpy": MEMCPY, "memset": MEMSET}
    return {name: re.compile(text, re.IGNORECASE) for name, text in texts.items() if text}


@cache
def group_of(kernel: str) -> str:
    """The group of a kernel by its name."""
    found = (name for name, pattern in patterns().items() if pattern.search(kernel))
    return next(found, "other")


def not_regex(group: str) -> str:
    """What a kernel of `group` must not match: the patterns of all earlier groups."""
    if not GROUPS[group] and group != "other":
        return ""
    earlier = NAMES[: INDEX[group]]
    return "|".join(f"(?:{patterns()[name].pattern})" for name in earlier if name in patterns())
