"""Omnistat's configuration, rendered: its reader expands nothing, so nothing is left to expand.

Pure functions. Every value is final: no reference to the environment, to another key or to a file
that the system's own collector uses.
"""

from __future__ import annotations

import configparser
import io
import json
from dataclasses import dataclass
from pathlib import Path

from perfproof.schema.config import Dtype

SYSTEM_PORT = 8001
"""Where the system's own collector listens, if there is one. Ours never does."""
PREFERRED_PORTS = range(8101, 8111)

# One set of counters a type, small enough to be collected at once: a second set would never fire,
# and FETCH_SIZE and WRITE_SIZE exclude each other.
PROFILES: dict[Dtype, tuple[str, tuple[str, ...]]] = {
    "float64": (
        "hbm_flops_f64",
        (
            "FETCH_SIZE",
            "SQ_INSTS_VALU_ADD_F64",
            "SQ_INSTS_VALU_MUL_F64",
            "SQ_INSTS_VALU_FMA_F64",
            "SQ_INSTS_VALU_MFMA_MOPS_F64",
        ),
    ),
    "float32": ("hbm_flops_f32", ("FETCH_SIZE", "SQ_INSTS_VALU_MFMA_MOPS_F32")),
    "bfloat16": ("hbm_flops_bf16", ("FETCH_SIZE", "SQ_INSTS_VALU_MFMA_MOPS_BF16")),
}


@dataclass(frozen=True)
class Setup:
    """What the configuration depends on."""

    folder: Path
    """Where this run's own detection files lie."""
    port: int
    store_host: str
    store_port: int
    dtype: Dtype
    counters: bool
    rocm: str = "/opt/rocm"
    local: bool = False


def render(setup: Setup) -> str:
    """The configuration's text."""
    profile, counters = PROFILES[setup.dtype]
    sections: dict[str, dict[str, object]] = {
        "omnistat.collectors": {
            "port": setup.port,
            "enable_rocm_smi": False,
            "enable_amd_smi": True,
            "enable_ras_ecc": True,
            "enable_rms": True,
            "enable_rocprofiler": setup.counters,
            "enable_network": True,
            "enable_vendor_counters": False,
            "enable_host_metrics": True,
            "enable_xgmi": True,
            "enable_cu_occupancy": False,
            "enable_kernel_trace": False,
            "rocm_path": setup.rocm,
            # Told to end by the node of the launcher, which other nodes know by another address.
            "allowed_ips": "127.0.0.1" if setup.local else "127.0.0.1, 0.0.0.0",
        },
        "omnistat.collectors.rms": {
            "enable_annotations": False,
            "job_detection_mode": "file-based",
            "job_detection_file": setup.folder / "omnistat_job",
            # Without it the system's step file would be believed, where there is one.
            "step_detection_file": setup.folder / "omnistat_job_step",
        },
        "omnistat.collectors.host": {"enable_proc_io_stats": True},
        "omnistat.collectors.rocprofiler": {"profile": profile},
        f"omnistat.collectors.rocprofiler.{profile}": {
            "sampling_mode": "constant",
            "counters": json.dumps(counters),
        },
        "omnistat.query": {
            "prometheus_url": f"http://{setup.store_host}:{setup.store_port}",
            "system_name": "perfproof",
        },
        # A store of our own: the one that Omnistat starts has a fixed port, and is stopped by a
        # pattern that fits every store of this user.
        "omnistat.usermode": {
            "external_victoria": True,
            "external_victoria_endpoint": setup.store_host,
            "external_victoria_port": setup.store_port,
        },
    }
    config = configparser.ConfigParser(interpolation=None)
    for name, values in sections.items():
        # Omnistat's reader takes a lone percent sign for the start of a reference.
        config[name] = {key: str(value).replace("%", "%%") for key, value in values.items()}
    text = io.StringIO()
    config.write(text)
    return text.getvalue()
