"""`grade --rerun`: the repeated runs of a bundle, and what its code can access."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path

from gpucourse.learning.review.rerun import compare_checks, list_settings, list_start_options, make_environment, make_home
from gpucourse.runs.results import verdict_on
from gpucourse.storage import write_text
from tests.learning import METRICS, Learning


def test_compare_checks_names_a_check_that_fails_in_one_run(learning: Learning) -> None:
    record, second_run = (learning.record(metrics=METRICS | {"wet": wet}) for wet in (True, False))
    context = learning.open_context()
    exercise = context.catalog.exercise("1.1")[1]
    same, second_checks = (
        [asdict(check) for check in verdict_on(context, exercise, run).checks] for run in (record, second_run)
    )
    assert compare_checks(context, exercise, record, same) == ""
    assert compare_checks(context, exercise, record, second_checks) == "check wet: passed in the bundle, failed when rerun"
    assert compare_checks(context, exercise, second_run, same) == "check wet: failed in the bundle, passed when rerun"
    new = [*same, {"id": "one-group", "verdict": "failed", "evidence": "logic"}]
    assert compare_checks(context, exercise, record, new) == "check one-group: not in the bundle, failed when rerun"


def test_make_environment_shows_scripts_no_credentials(learning: Learning, tmp_path: Path) -> None:
    environ = {
        "AWS_SECRET_ACCESS_KEY": "x", "GITHUB_TOKEN": "x", "GPUCOURSE_COURSE_TOKEN": "x", "SSH_AUTH_SOCK": "x",
        "XDG_RUNTIME_DIR": "x", "XDG_CONFIG_HOME": "x", "PATH": "/bin", "HOME": str(tmp_path / "instructor"),
        "GPUCOURSE_COURSE": "/course", "GPUCOURSE_WORKSPACE": "/mine",
    }  # fmt: skip
    for secret in (".ssh/id_ed25519", ".aws/credentials", ".config/gpucourse/trusted.json", ".cache/gpucourse/provider"):
        write_text(tmp_path / "instructor" / secret, "x")
    home = make_home({"HOME": environ["HOME"]}, tmp_path / "home")
    environment = make_environment(environ, learning.open_context().paths, home)
    environment.pop("PYTHONUSERBASE", None)
    workspace = str(learning.workspace)
    assert environment == {"PATH": "/bin", "GPUCOURSE_COURSE": "/course", "HOME": str(home), "GPUCOURSE_WORKSPACE": workspace}
    names = {path.relative_to(home).as_posix() for path in home.rglob("*") if not path.is_dir()}
    assert names == {".config/gpucourse/trusted.json"}
    assert (home / ".cache/gpucourse/provider").is_file(), "what was downloaded is not downloaded again"


def test_list_settings_ignores_names_that_lead_out_of_a_bundle(learning: Learning) -> None:
    (learning.root / "secret.txt").write_text("hidden words\n")
    evil = ["../../../../secret.txt", str(learning.root / "secret.txt"), "/dev/zero", "helper.py"]
    parameters = {"depth": "1; touch /tmp/x", "--sweep": "depth=1,2", "nodes": [1]}
    learning.record(edited=evil, parameters=parameters)
    path = learning.hand_in()
    output = learning.types("grade", "--open", str(path), "--exercise", "1.1").out
    assert "hidden words" not in output
    assert "helper.py" in output
    assert "edited, but the run has no copy of it" in output
    result = learning.types("grade", "--rerun", str(path), "--yes", code=3)
    assert "helper.py was edited but is not in the bundle" in " ".join(result.out.split())
    exercise = learning.context.catalog.exercise("1.1")[1]
    record = learning.record(edited=evil, parameters=parameters)
    assert list_settings(exercise, record) == ["--set", "depth=1; touch /tmp/x"], "one word, which the manifest refuses"


def test_list_start_options_has_the_variables_that_were_typed(learning: Learning) -> None:
    record = learning.record(environment={"A": "b c"}, torchrun="--max-restarts=1")
    assert list_start_options(record) == ["--env", "A=b c", "--torchrun", "--max-restarts=1"]


def test_rerun_of_a_run_with_values_that_were_not_stored_is_refused(learning: Learning) -> None:
    learning.record(handed_on=["TOKEN"])
    result = learning.types("grade", "--rerun", str(learning.hand_in()), "--yes", code=3)
    assert "whose values are not stored: TOKEN" in " ".join(result.out.split())
