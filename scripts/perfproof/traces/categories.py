"""Categories of CPU operations: by the operation's name, else by the kernels it launches."""

from __future__ import annotations

import re
from functools import cache

_BACKWARD = re.compile("backward|_bwd", re.IGNORECASE)

# (category, whether it has a forward and a backward, pattern on the operation's name)
_BY_NAME: tuple[tuple[str, bool, re.Pattern[str]], ...] = tuple(
    (name, directed, re.compile(pattern, re.IGNORECASE))
    for name, directed, pattern in (
        ("record_param_comms", False, "^(?:record_param_comms|c10d::|nccl:)"),
        ("triton", False, "^triton"),
        ("SDPA", True, "scaled_dot_product|attention|flash_attn|fmha|mha_(?:fwd|bwd)"),
        ("CONV", True, "convolution|conv(?:[123]d|bias)|_conv_"),
        ("NORM", True, "(?:batch|layer|group|instance|rms)_?norm"),
        ("GEMM", False, r"gemm|::_?(?:scaled_|add|b|badd)*(?:mm|matmul|linear|mv|bmm)$"),
        ("multi_tensor_apply", False, "_foreach_|::_fused_adam|::_fused_sgd|::_amp_"),
    )
)

_BY_GROUP: dict[str, str] = {
    "comm": "record_param_comms",
    "memcpy": "memcpy",
    "memset": "memset",
    "gemm": "GEMM",
    "attention": "SDPA",
    "convolution": "CONV",
    "normalization": "NORM",
    "reduction": "reduce",
    "scatter_gather": "scatter_gather",
    "elementwise": "elementwise",
    "optimizer": "multi_tensor_apply",
    "sort": "sort",
    "other": "other",
}
_DIRECTED = frozenset({"SDPA", "CONV", "NORM"})


@cache
def category(op: str, kernel_group: str) -> str:
    """The category of an operation whose (first) kernel is in `kernel_group`."""
    for name, directed, pattern in _BY_NAME:
        if pattern.search(op):
            return name + _direction(op) if directed else name
    name = _BY_GROUP[kernel_group]
    return name + _direction(op) if name in _DIRECTED else name


def _direction(op: str) -> str:
    return "_bwd" if _BACKWARD.search(op) else "_fwd"
