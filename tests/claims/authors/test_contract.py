"""The contract of other authors, broken in every way that a program can break it."""

from __future__ import annotations

import time
from dataclasses import replace
from pathlib import Path

import pytest

from perfproof.claims.authors import confine
from perfproof.claims.authors.author import claims_by
from perfproof.claims.authors.contract import KEY_VARIABLE, MOST_BYTES
from perfproof.claims.verify_trace import verify
from perfproof.core.files import write_record
from perfproof.schema.claims import Verdict
from tests.claims.authors.analysis import HONEST, Analysis, idle_claim, make_analysis, program


@pytest.fixture(scope="module")
def analysis(tmp_path_factory: pytest.TempPathFactory) -> Analysis:
    return make_analysis(tmp_path_factory.mktemp("analysis"))


def test_claims_are_taken_numbered_and_signed_by_us(analysis: Analysis, tmp_path: Path) -> None:
    author = program(tmp_path, HONEST, [idle_claim(author="analyst", id="TR-001")])
    found, record = claims_by(author, "prompt", analysis.inputs(), analysis.terms())
    assert [(c.id, c.author) for c in found.claims] == [("TR-501", "command:author.py")]
    assert (record.status, record.reason, record.rejected) == ("ok", "one claim", [])
    assert record.accepted == ["TR-501"]
    assert record.inputs.keys() == analysis.inputs().keys()


@pytest.mark.parametrize(("value", "verdict"), [(0.45, Verdict.VERIFIED), (0.9, Verdict.REFUTED)])
def test_the_verifier_judges_them_like_any_other(
    analysis: Analysis, tmp_path: Path, value: float, verdict: Verdict
) -> None:
    author = program(tmp_path, HONEST, [idle_claim(value)])
    found, _ = claims_by(author, "prompt", analysis.inputs(), analysis.terms())
    write_record(tmp_path / "claims.json", found)
    judged = verify(tmp_path / "claims.json", analysis.inventory)
    assert [(c.verdict, c.author) for c in judged.claims] == [(verdict, "command:author.py")]


BREACHES = {
    "no status": ("answer(json.dumps(SET))", "no status as the last line"),
    "status not last": (f"{HONEST}; print('done')", "no status as the last line"),
    "fails": ("print('STATUS=fail; reason=no data'); sys.exit(1)", "failed: no data"),
    "wrong exit code": (f"{HONEST}; sys.exit(3)", "STATUS=ok with exit code 3"),
    "crashes": ("raise SystemExit('boom')", "no status as the last line (exit code 1)"),
    "no answer": ("print('STATUS=ok; reason=')", "no such file"),
    "a link": (
        "os.symlink('/etc/passwd', 'output/claims.json'); print('STATUS=ok; reason=')",
        "or a link",
    ),
    "a pipe": ("os.mkfifo('output/claims.json'); print('STATUS=ok; reason=')", "no regular file"),
    "a folder": ("os.mkdir('output/claims.json'); print('STATUS=ok; reason=')", "no regular file"),
    "too large": (
        f"answer(' ' * {MOST_BYTES + 1}); print('STATUS=ok; reason=')",
        f"more than {MOST_BYTES} bytes",
    ),
    "a huge file": (f"answer('x' * {confine.MOST_BYTES + 1})", "no status"),
    "not UTF-8": (
        "open('output/claims.json', 'wb').write(b'\\xff'); print('STATUS=ok; reason=')",
        "not UTF-8",
    ),
    "not JSON": ("answer('I think that'); print('STATUS=ok; reason=')", "not JSON"),
    "deep": ("answer('[' * 100000); print('STATUS=ok; reason=')", "not JSON"),
    "no list": ("answer('{}'); print('STATUS=ok; reason=')", "no list 'claims'"),
    "another run": ("SET['run_id'] = 'x/y'; " + HONEST, "trace claims of run 'x/y'"),
    "another source": ("SET['source'] = 'telemetry'; " + HONEST, "telemetry claims of run"),
    "unknown key": ("SET['mood'] = 'good'; " + HONEST, "unknown key"),
}


@pytest.mark.parametrize(("code", "says"), BREACHES.values(), ids=BREACHES)
def test_a_breach_costs_the_whole_answer(
    analysis: Analysis, tmp_path: Path, code: str, says: str
) -> None:
    author = program(tmp_path, code)
    found, record = claims_by(author, "prompt", analysis.inputs(), analysis.terms())
    assert found.claims == []
    assert record.status == "fail"
    assert says in record.reason
    assert "\n" not in record.reason
    assert [problem.what for problem in found.problems] == [record.reason]


def test_one_that_hangs_is_ended_with_its_children(analysis: Analysis, tmp_path: Path) -> None:
    mark = tmp_path / "scratch-pid"
    code = (
        "pid = os.fork()\n"
        "if pid == 0:\n    time.sleep(60)\n"
        "pathlib.Path('scratch/pid').write_text(str(pid))\n"
        "answer(json.dumps(SET)); print(pid, 'STATUS=ok; reason=', flush=True)\ntime.sleep(60)"
    )
    author = replace(program(tmp_path, code), timeout_s=2.0)
    begin = time.monotonic()
    found, record = claims_by(author, "prompt", analysis.inputs(), analysis.terms())
    assert time.monotonic() - begin < 20
    assert found.claims == []
    assert "no end within 2 s" in record.reason
    assert not mark.exists()


def test_children_left_behind_end_with_it(analysis: Analysis, tmp_path: Path) -> None:
    code = (
        "pid = os.fork()\n"
        "if pid == 0:\n    time.sleep(60)\n"
        "answer(json.dumps(SET)); print(f'STATUS=ok; reason={pid}')"
    )
    _, record = claims_by(program(tmp_path, code), "p", analysis.inputs(), analysis.terms())
    # The signal is sent when `claims_by` returns; the kernel may take a moment over it.
    deadline = time.monotonic() + 10
    while is_running(record.reason) and time.monotonic() < deadline:
        time.sleep(0.02)
    assert not is_running(record.reason)


def is_running(pid: str) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False


def test_it_sees_its_inputs_and_nothing_of_ours(
    analysis: Analysis, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SOME_TOKEN", "secret")
    monkeypatch.setenv(KEY_VARIABLE, "sk-key")
    code = (
        "assert 'SOME_TOKEN' not in os.environ\n"
        f"assert os.environ[{KEY_VARIABLE!r}] == 'sk-key'\n"
        "assert os.environ['HOME'] == os.path.join(os.getcwd(), 'scratch')\n"
        "assert sorted(os.listdir()) == ['inputs', 'output', 'prompt.md', 'scratch']\n"
        "assert open('prompt.md').read() == 'do this'\n"
        "assert os.listdir('output') == [] == os.listdir('scratch')\n"
        "names = sorted(str(p.relative_to('inputs')) for p in pathlib.Path('inputs').rglob('*')"
        " if p.is_file())\n"
        "assert 'tables/rank-0/window_timeline.csv' in names, names\n"
        "assert not [n for n in names if n.startswith(('claims/', 'verified/', 'trace_rank'))]\n"
        f"assert not os.stat('inputs/{'foms.json'}').st_mode & 0o222\n" + HONEST
    )
    _, record = claims_by(program(tmp_path, code), "do this", analysis.inputs(), analysis.terms())
    assert (record.status, record.reason) == ("ok", "one claim")


def test_inputs_that_it_changes_cost_the_answer(analysis: Analysis, tmp_path: Path) -> None:
    """Where the kernel confines writes it cannot; elsewhere root can, and is found out."""
    code = (
        "os.chmod('inputs/foms.json', 0o644)\n"
        "try:\n    open('inputs/foms.json', 'a').write('x')\n"
        "except PermissionError:\n    print('STATUS=fail; reason=refused'); sys.exit(1)\n" + HONEST
    )
    found, record = claims_by(program(tmp_path, code), "p", analysis.inputs(), analysis.terms())
    assert found.claims == []
    wanted = "refused" if confine.available() else "changed its input foms.json"
    assert wanted in record.reason


@pytest.mark.skipif(not confine.available(), reason="this kernel has no Landlock")
def test_it_writes_nowhere_else(analysis: Analysis, tmp_path: Path) -> None:
    ours = analysis.base / "foms.json"
    before = ours.read_bytes()
    code = (
        "refused = []\n"
        f"for path in ({str(ours)!r}, {str(tmp_path / 'new')!r}, 'beside', '/tmp/beside-author'):\n"
        "    try:\n        open(path, 'w').write('x')\n"
        "    except OSError:\n        refused.append(path)\n"
        f"for path in ({str(ours)!r},):\n"
        "    try:\n        os.unlink(path)\n"
        "    except OSError:\n        refused.append(path)\n"
        "open('scratch/a', 'w').write('x'); open('/dev/null', 'w').write('x')\n"
        "answer(json.dumps(SET)); print(f'STATUS=ok; reason={len(refused)} refused')"
    )
    found, record = claims_by(program(tmp_path, code), "p", analysis.inputs(), analysis.terms())
    assert record.reason == "5 refused"
    assert record.writes_confined
    assert ours.read_bytes() == before
    assert not (tmp_path / "new").exists()
    assert not Path("/tmp/beside-author").exists()
    assert len(found.claims) == 1


def test_the_key_is_kept_out_of_everything(
    analysis: Analysis, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(KEY_VARIABLE, "sk-key")
    repeats = program(tmp_path, HONEST, [idle_claim(statement="the key is sk-key")])
    found, record = claims_by(repeats, "p", analysis.inputs(), analysis.terms())
    assert found.claims == []
    assert "it repeats the key" in record.reason
    says = program(tmp_path, 'answer(json.dumps(SET)); print("STATUS=ok; reason=with sk-key")')
    _, record = claims_by(says, "p", analysis.inputs(), analysis.terms())
    assert record.reason == "with [key]"


def test_no_directory_is_left_behind(
    analysis: Analysis, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    code = "os.makedirs('output/a/b'); os.chmod('output/a', 0); " + HONEST
    claims_by(program(tmp_path, code), "p", analysis.inputs(), analysis.terms())
    assert list(tmp_path.glob("author-*")) == []


def test_a_program_that_is_not_there_is_said(analysis: Analysis, tmp_path: Path) -> None:
    author = replace(program(tmp_path, ""), command=("/no/such/program",))
    _, record = claims_by(author, "p", analysis.inputs(), analysis.terms())
    assert "no status as the last line" in record.reason
