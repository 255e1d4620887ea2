"""Whether the files of a run can be read and written, and whether there is room."""

from __future__ import annotations

import os
from pathlib import Path

import psutil

from perfproof.cluster.preflight_checks.site import Site, expanded, fail, ok, warn
from perfproof.schema.cluster import Check

_PROBE_BYTES = 1 << 20
_LITTLE_GB, _TOO_LITTLE_GB = 20.0, 1.0
# Kinds of file system that several hosts see as one.
_SHARED = (
    *("nfs", "lustre", "gpfs", "beegfs", "ceph", "wekafs", "daos", "panfs", "pvfs", "orangefs"),
    *("afs", "cifs", "smb", "virtiofs", "9p", "fuse", "vast", "glusterfs", "quobyte"),
)


def writable(site: Site, name: str, text: str) -> Check:
    """A directory in which a file can be made, filled and removed: that also meets a full quota."""
    full, unset = expanded(text)
    if unset:
        return fail(name, f"{unset} is not set", f"set it, or change {site.file}")
    path = Path(full)
    if name == "results":
        path.mkdir(parents=True, exist_ok=True)
    if not path.is_dir():
        return fail(name, f"no directory {path}", f"create it, or change {site.file}")
    probe = path / f".perfproof-preflight-{os.getpid()}"
    try:
        with probe.open("wb") as stream:
            stream.write(bytes(_PROBE_BYTES))
            stream.flush()
            os.fsync(stream.fileno())
    except OSError as fault:
        return fail(name, f"{path}: {fault.strerror}", "correct its rights, quota or mount")
    finally:
        probe.unlink(missing_ok=True)
    return _room(site, name, path)


def _room(site: Site, name: str, path: Path) -> Check:
    disk, kind = os.statvfs(path), filesystem(path)
    free_gb = disk.f_bavail * disk.f_frsize / 1e9
    found = f"{path} is writable, {free_gb:.0f} GB free, {kind}"
    if free_gb < _TOO_LITTLE_GB or (disk.f_files and disk.f_favail < 1000):
        return fail(name, f"{found}, {disk.f_favail} files left", "make room: traces are large")
    if free_gb < _LITTLE_GB:
        return warn(name, found, f"make room: less than {_LITTLE_GB:g} GB")
    if site.cluster.launcher == "srun" and not kind.startswith(_SHARED):
        return warn(name, found, "if nodes cannot see it, move to a shared file system")
    return ok(name, found)


def filesystem(path: Path) -> str:
    """Kind of the file system that holds `path`, as the kernel calls it."""
    real = path.resolve()
    mounts = {part.mountpoint: part.fstype for part in psutil.disk_partitions(all=True)}
    held = [point for point in map(str, (real, *real.parents)) if point in mounts]
    return mounts[held[0]] if held else "unknown"


def readable(site: Site, name: str, text: str) -> Check:
    """A file or directory that training reads."""
    full, unset = expanded(text)
    if unset:
        return fail(name, f"{unset} is not set", f"set it, or change {site.file}")
    path = Path(full)
    if not path.exists():
        return fail(name, f"nothing at {path}", f"correct data_paths in {site.file}")
    if not os.access(path, os.R_OK | (os.X_OK if path.is_dir() else 0)):
        return fail(name, f"{path} is not readable", "correct its rights")
    return ok(name, f"{path} is readable")
