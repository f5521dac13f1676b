"""The files of a workspace by name; `stack_paths` has those of a stack. No other module builds a path in it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from gpucourse.workspace.stack_paths import StackPaths


@dataclass(frozen=True)
class WorkspacePaths:
    """Every file of one workspace."""

    root: Path

    @property
    def settings(self) -> Path:
        """Return `gpucourse.yaml`: the only file that a learner edits by hand."""
        return self.root / "gpucourse.yaml"

    @property
    def exercises(self) -> Path:
        """Return the folder of the learner's own copies; `run` uploads these."""
        return self.root / "exercises"

    @property
    def reset_backups(self) -> Path:
        """Return the folder of what the learner had before a `reset`: it contains one folder for each time."""
        return self.root / "kept"

    @property
    def runs(self) -> Path:
        """Return the folder with one folder for each exercise, which contains one for each run."""
        return self.root / "runs"

    def run(self, exercise: str, run_id: str) -> RunPaths:
        """Return the files of one run."""
        return RunPaths(self.runs / exercise / run_id)

    @property
    def deliverables_root(self) -> Path:
        """Return `deliverables`: it contains one folder for each exercise."""
        return self.root / "deliverables"

    def deliverables(self, exercise: str) -> Path:
        """Return the folder of what the learner hands in for one exercise."""
        return self.deliverables_root / exercise

    def verdict(self, exercise: str) -> Path:
        """Return the file with the newest verdict on an exercise."""
        return self.deliverables(exercise) / "verdict.json"

    def answers(self, exercise: str) -> Path:
        """Return the file with the learner's answers to the questions of one exercise."""
        return self.deliverables(exercise) / "answers.yaml"

    def attempts(self, exercise: str) -> Path:
        """Return the file with every answer that was given to the choices and numbers of one exercise."""
        return self.deliverables(exercise) / "attempts.json"

    def yours(self, exercise: str) -> Path:
        """Return the file with the verdicts on the learner's parts of one exercise."""
        return self.deliverables(exercise) / "yours.json"

    def list_yours(self) -> list[Path]:
        """Return the file `yours` of every exercise that has one."""
        return list(self.deliverables_root.glob("*/yours.json"))

    def yours_file(self, exercise: str, file: str) -> Path:
        """Return the learner's file as it was when `yours` was written."""
        return self.deliverables(exercise) / "yours" / file

    def review(self, exercise: str) -> Path:
        """Return the file with the learner's judgements of their own free text: shown, never counted."""
        return self.deliverables(exercise) / "review.json"

    def peer_review(self, key: str, exercise: str) -> Path:
        """Return the file in which the owner of this workspace, as a reviewer, judged another learner's free text."""
        return self.private / "reviews" / key / f"{exercise}.json"

    def comparison(self, exercise: str) -> Path:
        """Return the file with the tables of the newest comparison of runs of one exercise."""
        return self.deliverables(exercise) / "comparison.md"

    def sweep_deliverable(self, exercise: str, parameter: str, ending: str) -> Path:
        """Return a file of the newest sweep over a parameter, as it is handed in; `ending` includes its dot."""
        return self.deliverables(exercise) / f"sweep-{parameter}{ending}"

    @property
    def course_report(self) -> Path:
        """Return the page about what was learned; its pictures are beside it."""
        return self.deliverables("course") / "report.md"

    def report(self, ending: str) -> Path:
        """Return the final report in the format with that file suffix."""
        return self.deliverables("final") / f"report.{ending}"

    @property
    def page(self) -> Path:
        """Return the folder that `open` writes for a browser: it is written again each time."""
        return self.root / "page"

    @property
    def receipts(self) -> Path:
        """Return the folder with one receipt for each destroy."""
        return self.root / "receipts"

    def receipt(self, stamp: str, stack: str) -> Path:
        """Return the receipt of one destroy."""
        return self.receipts / f"{stamp}-{stack}.json"

    @property
    def private(self) -> Path:
        """Return the folder with the program's state: never edited by hand."""
        return self.root / ".gpucourse"

    @property
    def identity(self) -> Path:
        """Return the file with the workspace's version and id."""
        return self.private / "workspace.json"

    @property
    def originals(self) -> Path:
        """Return the file that says from which version of each exercise the learner's copy was made."""
        return self.private / "originals.json"

    @property
    def delivery_list(self) -> Path:
        """Return the file that lists which files of `deliverables/` this program put there."""
        return self.private / "delivered.json"

    @property
    def hints(self) -> Path:
        """Return the file with the number of hints of each exercise that the learner has seen."""
        return self.private / "hints.json"

    @property
    def quiz(self) -> Path:
        """Return the file with every attempt at the quiz."""
        return self.private / "quiz.json"

    @property
    def drills(self) -> Path:
        """Return the folder for the faults that were injected into runs."""
        return self.private / "drills"

    def drill(self, run_id: str) -> Path:
        """Return the file with the fault injected into a run, and the learner's diagnoses."""
        return self.drills / f"{run_id}.json"

    def broken_copy(self, exercise: str, suffix: str = "") -> Path:
        """Return the copy of an exercise with a fault in its code; with `suffix`, an earlier one that was saved under that
        name."""
        return (self.reset_backups / suffix if suffix else self.root) / "broken" / exercise

    @property
    def client_key(self) -> Path:
        """Return the private SSH key of this workspace; `.pub` is beside it."""
        return self.private / "keys" / "id_ed25519"

    @property
    def deployments(self) -> Path:
        """Return the folder with one record for each stack."""
        return self.private / "deployments"

    def deployment(self, stack: str) -> Path:
        """Return the record of one stack."""
        return self.deployments / f"{stack}.json"

    def stack(self, stack: str) -> StackPaths:
        """Return the files of one stack."""
        return StackPaths(self.private / "stacks" / stack)

    @property
    def regions(self) -> Path:
        """Return the file with every cloud region that was ever used."""
        return self.private / "regions.json"

    @property
    def ledger(self) -> Path:
        """Return the file with what every instance, disk, address and storage cost, and since when: one line for each event,
        only added to."""
        return self.private / "ledger.jsonl"

    @property
    def prices(self) -> Path:
        """Return the file with the prices that AWS reported to the last deploy in each region."""
        return self.private / "prices.json"

    def lock(self, name: str) -> Path:
        """Return the lock file of that name."""
        return self.private / "locks" / f"{name}.lock"

    @property
    def ssh_include(self) -> Path:
        """Return the file that says whether the learner wants a line in their own SSH configuration."""
        return self.private / "ssh_include.json"

    @property
    def all_ssh_hosts(self) -> Path:
        """Return the pattern that matches `ssh_hosts` of every stack."""
        return self.stack("*").ssh_hosts

    @property
    def log(self) -> Path:
        """Return the program's own log, for its internal errors."""
        return self.private / "gpucourse.log"


@dataclass(frozen=True)
class RunPaths:
    """Every file of one run."""

    folder: Path

    @property
    def record(self) -> Path:
        """Return `run.json`."""
        return self.folder / "run.json"

    @property
    def next_record(self) -> Path:
        """Return the sealed `run.json` before it gets that name: see `workspace.seals`."""
        return self.folder / ".run.json.next"

    @property
    def plan(self) -> Path:
        """Return `plan.json`: what was launched, node by node."""
        return self.folder / "plan.json"

    @property
    def metrics(self) -> Path:
        """Return `metrics.json`: what the script measured."""
        return self.folder / "metrics.json"

    @property
    def verdict(self) -> Path:
        """Return `verdict.json`: the checks on this run."""
        return self.folder / "verdict.json"

    @property
    def environment(self) -> Path:
        """Return `env.json`: the machine and software of each node."""
        return self.folder / "env.json"

    @property
    def hashes(self) -> Path:
        """Return `hashes.json`: the SHA-256 of every other file of this run."""
        return self.folder / "hashes.json"

    def yours_file(self, file: str) -> Path:
        """Return the learner's file as it was when the run started."""
        return self.folder / "yours" / file

    def edited_file(self, file: str) -> Path:
        """Return a file of the exercise that the learner had edited, as it was when the run started."""
        return self.folder / "edited" / file

    @property
    def screen(self) -> Path:
        """Return `screen.svg`: what the learner saw."""
        return self.folder / "screen.svg"

    @property
    def logs(self) -> Path:
        """Return the folder of the raw logs, one for each rank and each launcher."""
        return self.folder / "logs"

    def rank_log(self, node: str, rank: int | None) -> Path:
        """Return the raw log of one rank; with None, of that node's launcher."""
        return self.logs / (f"{node}-launcher.log" if rank is None else f"{node}-rank{rank}.log")

    def rank_times(self, node: str, rank: int | None) -> Path:
        """Return the file that says when each piece of that log arrived here: lines with its last offset and seconds since the
        epoch."""
        return self.rank_log(node, rank).with_suffix(".times")

    def node_logs(self, node: str) -> dict[int | None, Path]:
        """Return the logs of one node that are here already, by rank; the launcher's under None."""
        names = (path.name.removeprefix(f"{node}-rank").removesuffix(".log") for path in self.logs.glob("*.log"))
        ranks: list[int | None] = [None, *sorted(int(name) for name in names if _is_rank(name))]
        return {rank: path for rank in ranks if (path := self.rank_log(node, rank)).is_file()}

    def all_logs(self) -> dict[tuple[str, int | None], Path]:
        """Return every log that is here already, by node and rank; a launcher's rank is None."""
        ranks: dict[tuple[str, int | None], Path] = {}
        for path in sorted(self.logs.glob("*-rank*.log")):
            node, _, rank = path.stem.rpartition("-rank")
            if _is_rank(rank):
                ranks[node, int(rank)] = path
        launchers = sorted(self.logs.glob("*-launcher.log"))
        return {**ranks, **{(path.name.removesuffix("-launcher.log"), None): path for path in launchers}}

    @property
    def outputs(self) -> Path:
        """Return the folder of what the nodes' scripts wrote, one folder for each node."""
        return self.folder / "outputs"

    def node_outputs(self, node: str) -> Path:
        """Return the folder of what one node's script wrote."""
        return self.outputs / node

    def transfer(self, node: str) -> Path:
        """Return the folder for files of one node that are complete but do not have their final names yet; it is removed
        afterwards."""
        return self.folder / f".transfer-{node}"

    def node_metrics(self, node: str) -> Path:
        """Return the file with what one node's script measured."""
        return self.node_outputs(node) / "metrics.json"

    def node_queue(self, node: str) -> Path:
        """Return the file with Slurm's queue as that node showed it while jobs waited."""
        return self.node_outputs(node) / "squeue.txt"

    @property
    def transcript(self) -> Path:
        """Return `transcript.txt`: what a session in the learner's terminal showed, as clean text."""
        return self.folder / "transcript.txt"

    def batch(self, name: str) -> Path:
        """Return a file that was passed to sbatch."""
        return self.folder / f"{name}.sbatch"

    @property
    def batch_setup(self) -> Path:
        """Return `setup.sh`: what a batch file that the learner wrote reads first."""
        return self.folder / "setup.sh"

    @property
    def sweep(self) -> Path:
        """Return `sweep.json`: every value of a sweep, with its run."""
        return self.folder / "sweep.json"

    @property
    def sweep_table(self) -> Path:
        """Return `sweep.md`: the table over all values."""
        return self.folder / "sweep.md"

    def plot(self, name: str, ending: str) -> Path:
        """Return a picture of this run."""
        return self.folder / f"{name}.{ending}"


def _is_rank(text: str) -> bool:
    return text.isascii() and text.isdecimal()
