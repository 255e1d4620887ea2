"""The container's command line, and a rank that runs behind a stand-in for the runtime."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from perfproof.core.errors import InputError
from perfproof.schema.config import Cluster, Container
from perfproof.training.container import container_words, inside
from tests.training.tiny_runs import end_launch, start_launch, write_config

BOX = Container(
    image="/images/train.sif",
    overlay="/images/extra.img",
    binds=["/data:/data:ro", "$SCRATCH"],
    env={"MIOPEN_DISABLE_CACHE": "1"},
    options=["--cleanenv"],
)


def cluster(vendor: str, box: Container | None) -> Cluster:
    return Cluster.model_validate(
        {"cluster": "far", "description": "", "vendor": vendor, "container": box}
    )


@pytest.mark.parametrize(
    ("vendor", "option"), [("amd", ["--rocm"]), ("nvidia", ["--nv"]), ("none", [])]
)
def test_words_follow_from_the_clusters_file(
    vendor: str, option: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, root: Path
) -> None:
    monkeypatch.setenv("SCRATCH", "/scratch/me")
    packages = root / "scripts"
    assert container_words(cluster(vendor, BOX), tmp_path) == [
        *("apptainer", "exec", *option, "--overlay", "/images/extra.img:ro"),
        *("--bind", str(tmp_path), "--bind", f"{packages}:{packages}:ro"),
        *("--bind", "/data:/data:ro", "--bind", "/scratch/me"),
        *("--env", "MIOPEN_DISABLE_CACHE=1", "--env", f"PYTHONPATH={packages}"),
        *("--cleanenv", "/images/train.sif"),
    ]


def test_no_container_adds_no_word(tmp_path: Path) -> None:
    plain = cluster("amd", None)
    assert container_words(plain, tmp_path) == []
    assert inside((sys.executable, "-m", "x"), plain, sys.executable)[0] == sys.executable


def test_the_images_own_interpreter_runs_the_package() -> None:
    boxed = cluster("amd", BOX)
    assert inside((sys.executable, "-m", "x"), boxed, sys.executable) == ["python3", "-m", "x"]
    assert inside(("sh", "-c"), boxed, sys.executable) == ["sh", "-c"]


def test_a_variable_that_is_not_set_is_named(tmp_path: Path) -> None:
    box = BOX.model_copy(update={"image": "$NOWHERE_IMAGE", "binds": []})
    with pytest.raises(InputError, match=r"container.image: \$NOWHERE_IMAGE is not set"):
        container_words(cluster("amd", box), tmp_path)


def test_ranks_and_probe_run_inside(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A stand-in `apptainer` notes its arguments, then runs what comes after the image."""
    image, seen = tmp_path / "image.sif", tmp_path / "seen"
    image.touch()
    seen.mkdir()
    stand_in = tmp_path / "bin" / "apptainer"
    stand_in.parent.mkdir()
    stand_in.write_text(
        f"#!{sys.executable}\n"
        "import json, os, sys\n"
        f"with open(f'{seen}/{{os.getpid()}}', 'w') as out: json.dump(sys.argv[1:], out)\n"
        f"rest = sys.argv[sys.argv.index('{image}') + 1:]\n"
        "os.execvp(rest[0], rest)\n"
    )
    stand_in.chmod(0o755)
    monkeypatch.setenv("PATH", str(stand_in.parent), prepend=":")
    box = {"image": str(image), "python": sys.executable, "binds": ["/tmp"]}
    root = write_config(tmp_path, {"container": box})
    run = end_launch(start_launch(root, tmp_path, "orbit2", "ranks_2"), tmp_path)
    assert run.exit_code == 0, run.output
    calls = [json.loads(path.read_text()) for path in seen.iterdir()]
    after = [call[call.index(str(image)) + 1 :] for call in calls]
    ranks = [words for words in after if words[0] == sys.executable]
    assert [words[1:3] for words in ranks] == [["-m", "perfproof.training.rank"]] * 2
    (probe,) = [words for words in after if words[0] == "sh"]
    assert str(run.directory) in probe[2]
    for call in calls:
        assert call[0] == "exec"
        assert call[call.index("--bind") + 1] == str(run.directory.resolve())
    line = (run.directory / "node_health_probe.txt").read_text()
    assert "home=OK shared=OK sif=OK bind=OK" in line
    assert "apptainer" in run.manifest.command
