"""Connecting through a proxy command: its tokens, and errors if it leads nowhere."""

from __future__ import annotations

import shlex
import sys

import pytest

from gpucourse.errors import UnreachableError
from gpucourse.model.node import Node
from gpucourse.remote.ssh import dial, proxy_command


def node(proxy: str) -> Node:
    return Node(
        name="node0",
        role="head",
        address="198.51.100.7",
        port=22,
        private_address="10.0.0.7",
        user="ubuntu",
        gpus=1,
        instance_type="g4dn.xlarge",
        python="/usr/bin/python3",
        mode="aws",
        proxy=proxy,
    )


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("nc %h %p", ["nc", "198.51.100.7", "22"]),
        ("ssh -W %h:%p -l %r jump", ["ssh", "-W", "198.51.100.7:22", "-l", "ubuntu", "jump"]),
        ("'/a folder/proxy' --rate 50%% %h", ["/a folder/proxy", "--rate", "50%", "198.51.100.7"]),
        ("proxy %%h %x", ["proxy", "%h", "%x"]),
    ],
)
def test_proxy_command_fills_in_tokens_as_openssh_does(text: str, words: list[str]) -> None:
    assert proxy_command(node(text)) == words


def test_dial_sends_through_the_command() -> None:
    command = f"{shlex.quote(sys.executable)} -c 'import sys; print(sys.argv[1], input())' %h"
    with dial(node(command), 10.0) as line:
        line.sendall(b"hello\n")
        assert line.makefile("rb").readline() == b"198.51.100.7 hello\n"


def test_dial_ends_with_the_command() -> None:
    with dial(node("false"), 10.0) as line:
        assert line.recv(1) == b""


def test_dial_names_the_setting_of_a_missing_command() -> None:
    with pytest.raises(UnreachableError) as caught:
        dial(node("/no/such/proxy %h"), 10.0)
    assert "/no/such/proxy" in caught.value.what
    assert "ssh_proxy_command" in caught.value.hint


@pytest.mark.parametrize("text", ["'", "nc\0 %h", " "])
def test_dial_names_the_setting_of_a_wrong_command(text: str) -> None:
    with pytest.raises(UnreachableError, match="its proxy command cannot be used") as caught:
        dial(node(text), 1.0)
    assert "ssh_proxy_command" in caught.value.hint
