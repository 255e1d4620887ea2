"""Run a program that can write nowhere but in the directories named, and no large file.

`python -I confine.py DIRECTORY... -- COMMAND...`: Landlock (Linux 5.13) keeps even root's writes in
bounds. Where the kernel has none the program runs all the same; `available` says so beforehand.
Standard library only: it is run by its path, in an environment without this package.
"""

from __future__ import annotations

import ctypes
import os
import resource
import sys
from collections.abc import Sequence

MOST_BYTES = 16 * 2**20
_CREATE, _ADD, _RESTRICT = 444, 445, 446  # system call numbers, the same on all architectures
_VERSION_FLAG, _PATH_BENEATH, _NO_NEW_PRIVILEGES = 1, 1, 38
_WRITE_FILE, _REFER, _TRUNCATE = 1 << 1, 1 << 13, 1 << 14
_REMOVE_AND_MAKE = sum(1 << bit for bit in range(4, 13))
_libc = ctypes.CDLL(None, use_errno=True)


class _Ruleset(ctypes.Structure):
    _fields_ = (("handled", ctypes.c_uint64),)


class _Beneath(ctypes.Structure):
    _pack_ = 1
    _fields_ = (("allowed", ctypes.c_uint64), ("parent", ctypes.c_int32))


def available() -> bool:
    """Whether the kernel can confine writes."""
    return _version() > 0


def _version() -> int:
    return int(_libc.syscall(_CREATE, None, ctypes.c_size_t(0), _VERSION_FLAG))


def _rights() -> int:
    """All kinds of writing that this kernel knows."""
    version = _version()
    later = (_REFER if version >= 2 else 0) | (_TRUNCATE if version >= 3 else 0)
    return _WRITE_FILE | _REMOVE_AND_MAKE | later


def confine(directories: Sequence[str]) -> None:
    """From here on this process and its children write below `directories` only."""
    rights = _rights()
    rules = _checked(_libc.syscall(_CREATE, ctypes.byref(_Ruleset(rights)), ctypes.c_size_t(8), 0))
    for directory in directories:
        _allow(rules, directory, rights)
    _allow(rules, os.devnull, rights & (_WRITE_FILE | _TRUNCATE))
    _checked(_libc.prctl(_NO_NEW_PRIVILEGES, 1, 0, 0, 0))
    _checked(_libc.syscall(_RESTRICT, rules, 0))
    os.close(rules)


def _allow(rules: int, path: str, rights: int) -> None:
    parent = os.open(path, os.O_PATH | os.O_CLOEXEC)
    beneath = _Beneath(rights, parent)
    _checked(_libc.syscall(_ADD, rules, _PATH_BENEATH, ctypes.byref(beneath), 0))
    os.close(parent)


def _checked(result: int) -> int:
    if result < 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))
    return int(result)


def main() -> None:
    """Confine this process, then become the program."""
    split = sys.argv.index("--")
    directories, command = sys.argv[1:split], sys.argv[split + 1 :]
    if available():
        confine(directories)
    resource.setrlimit(resource.RLIMIT_FSIZE, (MOST_BYTES, MOST_BYTES))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    try:
        os.execvp(command[0], command)
    except OSError as fault:
        sys.exit(f"{command[0]}: {fault.strerror}")


if __name__ == "__main__":
    main()
