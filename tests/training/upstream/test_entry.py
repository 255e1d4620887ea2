"""Which script is run."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from perfproof.core.errors import InputError
from perfproof.schema.config import Upstream
from perfproof.training.upstream.entry import Entry, expanded, find_entry, started_by
from perfproof.training.upstream.hydragnn import HydraGnn
from perfproof.training.upstream.orbit2 import Orbit2
from perfproof.training.upstream.trainer import Trainer

EDM = "launch/train_edm.py"
LAUNCHER = "launch/launch_diffusion.sh"
PLAIN = "examples/intermediate_downscaling.py"


def touch(root: Path, *names: str) -> None:
    for name in names:
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()


def find(root: Path, trainer: type[Trainer] = Orbit2, **site: Any) -> Entry:
    return find_entry(root, Upstream(root=str(root), **site), trainer, "c.yaml", "upstream.m")


def test_edm_comes_before_the_launcher_and_that_before_downscaling(tmp_path: Path) -> None:
    touch(tmp_path, PLAIN, "configs/interm_8m.yaml", "mine.yaml")
    assert find(tmp_path) == Entry(tmp_path / PLAIN, tmp_path / "configs/interm_8m.yaml")
    touch(tmp_path, "launch/diffuse.py", "launch/d.yaml")
    (tmp_path / LAUNCHER).write_text("srun -n 8 \\\n  python ./diffuse.py d.yaml\n")
    assert find(tmp_path) == Entry(tmp_path / "launch/diffuse.py", tmp_path / "launch/d.yaml")
    touch(tmp_path, EDM)
    assert find(tmp_path, config_template="mine.yaml").script == tmp_path / EDM


def test_the_site_may_name_entry_and_configuration(tmp_path: Path) -> None:
    touch(tmp_path, EDM, PLAIN, "mine.yaml")
    found = find(tmp_path, entry=PLAIN, config_template="mine.yaml")
    assert found == Entry(tmp_path / PLAIN, tmp_path / "mine.yaml")


@pytest.mark.parametrize(
    ("site", "key"),
    [
        ({}, "upstream.m.config_template"),
        ({"config_template": "none.yaml"}, "upstream.m.config_template"),
        ({"entry": "none.py"}, "upstream.m.entry"),
    ],
)
def test_what_is_missing_is_named_with_its_key(
    tmp_path: Path, site: dict[str, str], key: str
) -> None:
    touch(tmp_path, EDM)
    with pytest.raises(InputError) as caught:
        find(tmp_path, Orbit2, **site)
    assert caught.value.key == key
    assert caught.value.where == "c.yaml"


def test_no_known_script_and_no_clone(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"gfm_mlip_all_mpnn\.py"):
        find(tmp_path, HydraGnn)
    with pytest.raises(InputError) as caught:
        find(tmp_path / "gone")
    assert caught.value.key == "upstream.m.root"


def test_comments_of_a_launcher_do_not_count(tmp_path: Path) -> None:
    touch(tmp_path, "a.py", "b.py")
    launcher = tmp_path / "go.sh"
    launcher.write_text(
        "#!/bin/bash\nexport X=\"it's\ntime srun -n 8 python3 a.py --x 1 # b.py\n#python b.py\n"
    )
    assert started_by(launcher) == (tmp_path / "a.py", None)
    launcher.write_text("python gone.py\n")
    with pytest.raises(InputError, match="gone"):
        started_by(launcher)
    launcher.write_text("srun ./program\n")
    with pytest.raises(InputError, match="starts Python"):
        started_by(launcher)


def test_variables_in_paths(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CLONES", "/clones")
    monkeypatch.delenv("NOT_THERE", raising=False)
    assert expanded("$CLONES/x", "c", "k") == "/clones/x"
    with pytest.raises(InputError, match=r"NOT_THERE\} is not set"):
        expanded("${NOT_THERE}/x", "c", "k")
