from __future__ import annotations

from pathlib import Path

import pytest

from gpucourse.errors import ManifestError
from gpucourse.workspace.locate import SETTINGS_TEXT
from gpucourse.workspace.settings import Settings, read_settings


def test_defaults_and_the_text_of_a_new_workspace_agree(tmp_path: Path) -> None:
    (tmp_path / "gpucourse.yaml").write_text(SETTINGS_TEXT)
    assert read_settings(tmp_path / "gpucourse.yaml") == Settings() == read_settings(tmp_path / "none.yaml")


def test_one_port_or_a_range() -> None:
    assert Settings(rendezvous_ports="29500").ports == (29500, 29500)
    assert Settings(rendezvous_ports="20000-20010").ports == (20000, 20010)


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("target: moon\n", "target: Input should be 'local'"),
        ("tarket: local\n", "tarket: unknown key; known: target, rendezvous_ports"),
        ("rendezvous_ports: 80-90\n", "rendezvous_ports: must be a range of ports"),
        ("rendezvous_ports: 30000-20000\n", "rendezvous_ports: must be a range of ports"),
        ("rendezvous_ports: ²9500\n", "rendezvous_ports: must be a range of ports"),
        ("- a\n- b\n", "must hold keys and values, not a list"),
        ("a: [\n", "not YAML"),
        ("a: \x01\n", "not YAML"),
    ],
)
def test_complaints_name_the_file_the_key_the_reason(tmp_path: Path, text: str, complaint: str) -> None:
    path = tmp_path / "gpucourse.yaml"
    path.write_text(text)
    with pytest.raises(ManifestError) as caught:
        read_settings(path)
    assert caught.value.complaints[0].startswith(f"{path}: ")
    assert complaint in caught.value.complaints[0]


def test_bytes_that_are_no_text(tmp_path: Path) -> None:
    path = tmp_path / "gpucourse.yaml"
    path.write_bytes(b"target: \xff\xfe")
    with pytest.raises(ManifestError, match="not UTF-8"):
        read_settings(path)


def test_an_empty_file_means_defaults(tmp_path: Path) -> None:
    (tmp_path / "gpucourse.yaml").touch()
    assert read_settings(tmp_path / "gpucourse.yaml") == Settings()
