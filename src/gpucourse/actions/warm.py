"""What finishing a run needs, imported while its ranks work: a third of a second for which nobody waits."""

from __future__ import annotations

import threading

from gpucourse.model.event import Event, LogBytes, Watcher


def warming(watch: Watcher) -> Watcher:
    """A watcher that tells everything on, and makes ready for drawing as soon as a rank has said something.

    Not before: until then the ranks load torch, and take every processor they get.
    """
    began = threading.Event()

    def tell(event: Event) -> None:
        watch(event)
        if isinstance(event, LogBytes) and event.rank is not None and not began.is_set():
            began.set()
            threading.Thread(target=_warm, name="warm").start()

    return tell


def _warm() -> None:
    from gpucourse.figures.plots import make_ready

    make_ready()
