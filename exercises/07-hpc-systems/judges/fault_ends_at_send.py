"""Judge a repaired copy: the time of a message over TCP must end after its arrival."""

from __future__ import annotations

from gpucourse.judge import Part, Way

WAYS = {
    "still": Way(
        "the time of a message over TCP still ends when the kernel has accepted it: nothing waits for the receiver's answer"
    )
}
SIZE = 1 << 16


class Socket:
    """Record its calls, and answer each request for bytes."""

    def __init__(self) -> None:
        self.calls: list[str] = []

    def sendall(self, _data: object) -> None:
        self.calls.append("send")

    def recv(self, count: int, *_flags: int) -> bytes:
        self.calls.append("receive")
        return b"k" * count

    recv_into = recv


def judge(part: Part) -> None:
    """Judge one message, with sockets that record their calls."""
    moving = part.function("Links")(SIZE)
    moving.control, moving.tcp = Socket(), Socket()
    part.call(moving.move, part.module.TCP, SIZE)
    if "receive" not in moving.tcp.calls[moving.tcp.calls.index("send") :]:
        raise part.wrong("still")
    part.note("a message ends with the receiver's answer")
