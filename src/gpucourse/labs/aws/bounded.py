"""Several looks at once, none of them waited for longer than the person would."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Hashable, Mapping
from typing import TypeVar

from gpucourse.errors import CloudUnreachable, GpucourseError

K = TypeVar("K", bound=Hashable)
T = TypeVar("T")


def at_once(looks: Mapping[K, Callable[[], T]], within_s: float) -> dict[K, T | GpucourseError]:
    """What each look gave, or the error that it met; one that takes longer than `within_s` is left alone and told as such.

    Errors that gpucourse does not expect are raised.
    """
    found: dict[K, T | GpucourseError] = {}
    faults: list[BaseException] = []

    def work(name: K, look: Callable[[], T]) -> None:
        try:
            found[name] = look()
        except GpucourseError as error:
            found[name] = error
        except BaseException as fault:  # noqa: BLE001  raised again in the caller's thread
            faults.append(fault)

    threads = [threading.Thread(target=work, args=pair, name="look", daemon=True) for pair in looks.items()]
    for thread in threads:
        thread.start()
    deadline = time.monotonic() + within_s
    for thread in threads:
        thread.join(max(0.0, deadline - time.monotonic()))
    if faults:
        raise faults[0]
    late = CloudUnreachable(f"no answer within {within_s:.0f} s", hint="check the network, then type the command again")
    known = dict(found)  # one that is late must not change it any more
    return {name: known.get(name, late) for name in looks}
