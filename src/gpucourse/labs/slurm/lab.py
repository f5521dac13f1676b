"""A lab on a Slurm cluster: the login node, the lab's jobs in the queue, and its folders."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, replace

from gpucourse.context import Context
from gpucourse.errors import InfrastructureError, MissingError
from gpucourse.labs.hosts.lab import HostsLab
from gpucourse.labs.slurm import install
from gpucourse.labs.slurm.facts import PLACES
from gpucourse.labs.slurm.probe import HOME, name_folder
from gpucourse.model.deployment import Leftover, SlurmDeployment
from gpucourse.model.event import Note, Watcher
from gpucourse.outside.names import printable
from gpucourse.ports import Link
from gpucourse.remote import host_probe
from gpucourse.remote.patience import ANSWER_S

# Another program may change the comment of a job, so a job also counts if it was submitted in a folder of the lab.
_LIST = "{places}; {home}; export PATH HOME; squeue -h -a -u \"$(id -un)\" -o '%A|%k|%Z'"
_END = "{places}; {home}; export PATH HOME; scancel {jobs}; for second in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15; do "
_END += "squeue -h -a -j {listed} -o %A 2>/dev/null | grep -q . || exit 0; sleep 1; done"


@dataclass
class SlurmLab(HostsLab):
    """The lab of one module on a cluster. Implements labs.destroy.Removable; only this lab's jobs and files are removed."""

    deployment: SlurmDeployment

    def down(self, watcher: Watcher) -> list[str]:
        """Cancel the lab's jobs, and remove its folders. Return the login node if nothing is left on it."""
        if cancelled := self._cancel():
            watcher(Note(text=f"cancelled in Slurm: {', '.join(cancelled)}"))
        return super().down(watcher)

    def scan_leftovers(self) -> list[Leftover]:
        """Return the lab's jobs that Slurm still lists, and its files and processes on the login node."""
        jobs = [Leftover(kind="job", id=job, remove=f"scancel {job}") for job in self._list_jobs()]
        return [*jobs, *super().scan_leftovers()]

    def end_everything(self) -> None:
        """Cancel the lab's jobs and remove its folders again, in case `down` missed some."""
        self._cancel()
        super().end_everything()

    def _cancel(self) -> list[str]:
        if jobs := self._list_jobs():
            command = _END.format(places=PLACES, home=HOME, jobs=" ".join(jobs), listed=",".join(jobs))
            self._ask(lambda link, _runs: link.run(command, timeout_s=ANSWER_S))
        return jobs

    def _list_jobs(self) -> list[str]:
        """Return the numbers of this lab's jobs that are in the queue."""
        return self._ask(self._list_jobs_on)[0] if self.nodes else []

    def _list_jobs_on(self, link: Link, runs: Sequence[str]) -> list[str]:
        result = link.run(_LIST.format(places=PLACES, home=HOME), timeout_s=ANSWER_S)
        if not result.ok:
            message = printable(result.stderr.decode("utf-8", "replace").strip()[-300:])
            raise InfrastructureError(
                f"{link.node.label}: Slurm does not say which jobs are in the queue ({message})",
                hint=f"gpucourse destroy {self.deployment.module} tries again",
            )
        jobs: dict[str, None] = {}
        for line in result.stdout.decode("utf-8", "replace").splitlines():
            number, _, remainder = line.strip().partition("|")
            comment, _, folder = remainder.rpartition("|")
            is_ours = comment == self.deployment.comment or _is_below(folder, runs)
            if is_ours and number.isascii() and number.isdigit() and len(number) <= 12:
                jobs[number] = None
        return list(jobs)

    def _list_folders(self) -> list[str]:
        return [*super()._list_folders(), name_folder(self.deployment.uid), install.name_folder(self.deployment.uid)]

    def _request(self, request: Callable[..., host_probe.Belongings], link: Link, runs: list[str]) -> host_probe.Belongings:
        """Make the request for the lab's current folder and for the folders of its earlier deploys, and combine the answers. An
        empty string means the home folder."""
        places = dict.fromkeys([*self.deployment.former_folders, self.deployment.shared])
        answers = [request(link, self.deployment.uid, runs, place) for place in places]
        return replace(answers[-1], found=tuple(dict.fromkeys(item for answer in answers for item in answer.found)))


def open_lab(context: Context, deployment: SlurmDeployment, *, without: Collection[str] = ()) -> SlurmLab:
    """Return the lab of a deployment. `without`: the names of nodes to leave alone."""
    if deployment.inventory is None and deployment.phase == "ready":
        raise MissingError(
            f"{deployment.stack} names no login node", hint=f"gpucourse deploy {deployment.module} --target slurm"
        )
    return SlurmLab(context.paths, context.transport, context.paths.stack(deployment.stack), deployment, without=without)


def _is_below(folder: str, runs: Sequence[str]) -> bool:
    names = "|".join(map(re.escape, runs))
    return bool(names) and re.search(rf"/\.gpucourse/jobs/({names})(/|$)", folder) is not None
