"""Judges a repaired copy: a message over TCP has arrived before its time ends."""

from __future__ import annotations

from gpucourse.judge import Part, Way

WAYS = {
    "still": Way(
        "the time of a message over TCP still ends when the kernel has taken it: nothing waits for the receiver's answer"
    )
}
SIZE = 1 << 16


class Socket:
    """Records what it is asked to do, and answers each request for bytes."""

    def __init__(self) -> None:
        self.calls: list[str] = []

    def sendall(self, _data: object) -> None:
        self.calls.append("send")

    def recv(self, count: int, *_flags: int) -> bytes:
        self.calls.append("receive")
        return b"k" * count

    recv_into = recv


def judge(part: Part) -> None:
    """One message, with sockets that record what they are asked to do."""
    moving = part.function("Links")(SIZE)
    moving.control, moving.tcp = Socket(), Socket()
    part.call(moving.move, part.module.TCP, SIZE)
    if "receive" not in moving.tcp.calls[moving.tcp.calls.index("send") :]:
        raise part.wrong("still")
    part.note("a message ends with the receiver's answer")
