"""Another solution of 6.5: each rank first finds out what it can load; then all of them load the newest common step."""

from __future__ import annotations

from elastic import DamagedCheckpointError, Worker


def can_load(worker: Worker, step: int) -> bool:
    """Return whether this rank can load a checkpoint."""
    try:
        worker.load(step)
    except DamagedCheckpointError:
        return False
    return True


def train(worker: Worker) -> None:
    """Train from the best common checkpoint to the last step."""
    worker.join()
    readable = {step for step in worker.list_steps() if can_load(worker, step)}
    worker.reset()
    everyone = worker.gather(sorted(readable))
    step = max((step for step in readable if all(step in steps for steps in everyone)), default=0)
    if step:
        worker.load(step)
    share_size = worker.batch // worker.size
    own_sequences = list(range(worker.rank * share_size, (worker.rank + 1) * share_size))
    while step < worker.steps:
        step += 1
        worker.train_step(step, own_sequences)
        if not step % worker.every:
            worker.save(step)
