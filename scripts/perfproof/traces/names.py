"""Normal form of kernel names: what differs between two builds or runs of the same kernel goes.

Kept: the function, its namespaces and all template parameters, so `<128, 64>` and `<64, 64>` stay
two kernels. Replaced: addresses, hashes of translation units, and the numbers that Triton,
Inductor and compilers append. `docs/trace_tools.md` lists the rules.
"""

from __future__ import annotations

import re
from functools import cache

# In order; each is (what, replacement).
_RULES: tuple[tuple[re.Pattern[str], str], ...] = tuple(
    (re.compile(pattern), replacement)
    for pattern, replacement in (
        (r"\s*\[clone [^\]]*\]|\.kd$|\.llvm\.\d+|\.(?:constprop|isra|part)\.\d+", ""),
        (r"<unnamed>|\(anonymous namespace\)|\{anonymous\}", "(anonymous)"),
        (r"0x[0-9a-fA-F]+", "0x*"),
        # nvcc: _GLOBAL__N__<hash>_<length>_<file>_<hash>, _INTERNAL_<hash>_..., __nv_static_..._
        (r"(_GLOBAL__N_+|_INTERNAL_|__nv_static_\d+__)[0-9a-f]{8}_(\d+_)?", r"\1*_"),
        (r"(_(?:cu|cpp|hip|cc))_[0-9a-f]{8}(?:_\d+)?(?![0-9a-zA-Z])", r"\1_*"),
        # A run of 16 or more hexadecimal digits, letters and digits both, between other characters.
        (
            r"(?<![0-9a-zA-Z])(?=[0-9a-f]*[a-f])(?=[0-9a-f]*[0-9])[0-9a-f]{16,}(?![0-9a-zA-Z])",
            "*",
        ),
        (r"\s+", " "),
    )
)
# triton_poi_fused_add_12, triton__0d1d2de, my_kernel_0d1d2d3de4: a number, or what Triton knew of
# each argument (d: divisible, c: constant, e: equal).
_INDUCTOR = re.compile(r"^(triton_.*?)(?:_\d+)?(?:_(?:\d+[dce]+)+\d*)?$")
_SPECIALIZED = re.compile(r"_(?:\d+[dce]+){2,}\d*(?:_\d+)?$")


@cache
def normal_form(kernel: str) -> str:
    """The name under which a kernel of one trace meets the same kernel of another."""
    for pattern, replacement in _RULES:
        kernel = pattern.sub(replacement, kernel)
    kernel = kernel.strip()
    if match := _INDUCTOR.match(kernel):
        return match[1].rstrip("_")
    return _SPECIALIZED.sub("", kernel)
