from __future__ import annotations

import os
from pathlib import Path

import pytest

from gpucourse.errors import ManifestError
from gpucourse.model.slurm_settings import SlurmSettings
from gpucourse.workspace.locate import settings_text
from gpucourse.workspace.settings import Settings, read_settings

TARGETS = ("local", "aws", "hosts")


def test_settings_text_has_the_defaults(tmp_path: Path) -> None:
    (tmp_path / "gpucourse.yaml").write_text(settings_text())
    assert read_settings(tmp_path / "gpucourse.yaml") == Settings() == read_settings(tmp_path / "none.yaml")


def test_settings_text_has_keys_for_machines_to_uncomment(tmp_path: Path) -> None:
    _, _, block = settings_text().partition("# For the target slurm")
    _, _, hosts = block.partition("\n")
    hosts = hosts.replace("# For the target hosts.\n", "")
    (tmp_path / "gpucourse.yaml").write_text("\n".join(line.removeprefix("# ") for line in hosts.splitlines()))
    settings = read_settings(tmp_path / "gpucourse.yaml")
    assert settings.hosts == ("me@gpu1", "me@gpu2:2222")
    assert settings.host_pythons == {"me@gpu1": "/home/me/venv/bin/python"}
    assert settings.slurm.choose() == SlurmSettings(
        login="me@cluster", partition="gpu", cpu_partition="cpu", account="abc123", setup=("module load pytorch",),
        folder="$SCRATCH",
    )  # fmt: skip


def test_ports_are_one_or_a_range() -> None:
    assert Settings(rendezvous_ports="29500").ports == (29500, 29500)
    assert Settings(rendezvous_ports="20000-20010").ports == (20000, 20010)


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("target: moon\n", "target: Input should be 'local'"),
        ("tarket: local\n", "tarket: unknown key. Did you mean target? Known: target, rendezvous_ports"),
        ("rendezvous_ports: 80-90\n", "rendezvous_ports: must be a range of ports"),
        (f"rendezvous_ports: '{'2' * 5000}'\n", "rendezvous_ports: must be a range of ports"),
        ("a: [\n", "not YAML"),
    ],
)
def test_read_settings_names_the_file_the_key_and_the_reason(tmp_path: Path, text: str, complaint: str) -> None:
    path = tmp_path / "gpucourse.yaml"
    path.write_text(text)
    with pytest.raises(ManifestError) as caught:
        read_settings(path, TARGETS)
    assert caught.value.complaints[0].startswith(f"{path}: ")
    assert complaint in caught.value.complaints[0]


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        (f"ttl: {'9' * 100_000}\n", "ttl: "),
        (f"ttl: {'9' * 299}\n", "ttl: "),
        (f"budget_usd: {'9' * 100_000}\n", "budget_usd: "),
        ("ttl: 2026-13-45\n", "is not a duration"),
        ("ttl: 1e300\n", "ttl: "),
        ('ssh_proxy_command: "\'"\n', "is not a command: no closing quotation"),
        ('ssh_proxy_command: "nc\\0 %h"\n', "must not contain control characters"),
        ("ssh_proxy_command: \"''\"\n", "it names no program"),
        ('owner: "a\\e[31m"\n', "must not contain control characters"),
        ('hosts: ["a\\0"]\n', "must not contain control characters"),
        ('host_pythons: {a: "b\\0"}\n', "must not contain control characters"),
        ("".join(f"k{n}: 1\n" for n in range(2000)), "unknown key"),
    ],
    ids=range(12),
)
def test_read_settings_refuses_what_no_person_writes(tmp_path: Path, text: str, complaint: str) -> None:
    path = tmp_path / "gpucourse.yaml"
    path.write_text(text)
    with pytest.raises(ManifestError, match=complaint) as caught:
        read_settings(path, TARGETS)
    assert all(len(line) < 1000 for line in caught.value.complaints)
    assert len(caught.value.complaints) <= 50


def test_read_settings_refuses_what_is_no_plain_file(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "endless").symlink_to("/dev/zero")
    (tmp_path / "self").symlink_to(tmp_path / "self")
    for name in ("pipe", "endless", "self"):
        with pytest.raises(ManifestError, match="cannot be read"):
            read_settings(tmp_path / name)


def test_read_settings_follows_a_link_to_a_file(tmp_path: Path) -> None:
    (tmp_path / "mine.yaml").write_text("owner: ada\n")
    (tmp_path / "gpucourse.yaml").symlink_to(tmp_path / "mine.yaml")
    assert read_settings(tmp_path / "gpucourse.yaml").owner == "ada"
