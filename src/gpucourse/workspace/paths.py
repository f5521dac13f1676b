"""The paths of a workspace's files. No other module builds a path inside a workspace."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Folder:
    """A folder with an attribute for each of its files. A subclass lists the files."""

    folder: Path


class Place:
    """A path with a fixed name below the folder that has this attribute, such as `folder / "plan.json"`."""

    def __init__(self, name: str) -> None:
        self.name = name

    def __get__(self, owner: Folder, _kind: object) -> Path:
        return owner.folder / self.name


class StackPaths(Folder):
    """Every file of one stack: Terraform's folder with its state, the simulated nodes, the SSH configuration."""

    terraform = Place("terraform")  # the stack's own copy of its Terraform files, with the state next to them
    state = Place("terraform/terraform.tfstate")  # the file with Terraform's state: what it has built
    # The file in which Terraform leaves the state if it could not write it under its own name.
    error_state = Place("terraform/errored.tfstate")
    # The stack's variables: Terraform reads this file automatically, so `destroy` uses the same values as `deploy`.
    variables = Place("terraform/gpucourse.auto.tfvars.json")
    # The file in which the stack's Terraform files may declare a variable for each value, as the files of version 0.1 do.
    declarations = Place("terraform/variables.tf")
    plan_file = Place("terraform/gpucourse.tfplan")  # the plan that was shown and is about to be applied
    # The lock that a Terraform process holds as long as it lives, even if the command that started it has died.
    terraform_lock = Place("terraform.lock")
    nodes = Place("nodes")  # the simulated nodes: their homes and keys, and the process that hosts them
    ssh_config = Place("ssh_config")  # the configuration file for plain `ssh -F`, `scp -F`, `rsync -e 'ssh -F ...'` and editors
    ssh_hosts = Place("ssh_hosts")  # the same nodes under unique names, for the learner's own SSH configuration to include
    known_hosts = Place("known_hosts")  # the pinned host keys of this stack's nodes, for plain `ssh`

    def terraform_log(self, command: str) -> Path:
        """Return the file with the whole output of the last Terraform command of that name."""
        return self.folder / f"terraform-{command}.log"


_LOG = re.compile(r"(?P<node>.+)-(?:rank(?P<rank>[0-9]+)|launcher)\.log")


class WorkspacePaths(Folder):
    """Every file of one workspace."""

    settings = Place("gpucourse.yaml")  # the only file that a learner edits by hand
    exercises = Place("exercises")  # the learner's own copies; `run` uploads these
    reset_backups = Place("kept")  # what the learner had before each `reset`, in one folder for each time
    runs = Place("runs")  # one folder for each exercise, which contains one for each run
    deliverables_root = Place("deliverables")  # it contains one folder for each exercise
    course_report = Place("deliverables/course/report.md")  # the page about what was learned; its pictures are next to it
    page = Place("page")  # the folder that `open` writes for a browser: it is written again each time
    receipts = Place("receipts")  # one receipt for each destroy
    private = Place(".gpucourse")  # the program's state: never edited by hand
    identity = Place(".gpucourse/workspace.json")  # the workspace's version and id
    # The file that says from which version of each exercise the learner's copy was made.
    originals = Place(".gpucourse/originals.json")
    # The file that lists which files of `deliverables/` this program put there.
    delivery_list = Place(".gpucourse/delivered.json")
    hints = Place(".gpucourse/hints.json")  # the number of hints of each exercise that the learner has seen
    quiz = Place(".gpucourse/quiz.json")  # every attempt at the quiz
    drills = Place(".gpucourse/drills")  # the faults that were injected into runs
    client_key = Place(".gpucourse/keys/id_ed25519")  # the private SSH key of this workspace; `.pub` is next to it
    deployments = Place(".gpucourse/deployments")  # one record for each stack
    regions = Place(".gpucourse/regions.json")  # every cloud region that was ever used
    # What every instance, disk, address and storage costs, and since when: one line for each event, never changed later.
    ledger = Place(".gpucourse/ledger.jsonl")
    prices = Place(".gpucourse/prices.json")  # the prices that AWS reported to the last deploy in each region
    # The file that says whether the learner wants a line in their own SSH configuration.
    ssh_include = Place(".gpucourse/ssh_include.json")
    log = Place(".gpucourse/gpucourse.log")  # the program's own log, for its internal errors

    @property
    def root(self) -> Path:
        """Return the folder of the workspace."""
        return self.folder

    def run(self, exercise: str, run_id: str) -> RunPaths:
        """Return the files of one run."""
        return RunPaths(self.runs / exercise / run_id)

    def deliverables(self, exercise: str) -> Path:
        """Return the folder of one exercise's deliverables."""
        return self.deliverables_root / exercise

    def verdict(self, exercise: str) -> Path:
        """Return the file with the newest verdict on an exercise."""
        return self.deliverables(exercise) / "verdict.json"

    def answers(self, exercise: str) -> Path:
        """Return the file with the learner's answers to the questions of one exercise."""
        return self.deliverables(exercise) / "answers.yaml"

    def attempts(self, exercise: str) -> Path:
        """Return the file with every answer that was given to the choice and number questions of one exercise."""
        return self.deliverables(exercise) / "attempts.json"

    def list_attempts(self) -> list[Path]:
        """Return the file `attempts` of every exercise that has one."""
        return list(self.deliverables_root.glob("*/attempts.json"))

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
        """Return the file with the learner's judgements of their own free text. They count half until a reviewer judges the
        text."""
        return self.deliverables(exercise) / "review.json"

    def peer_review(self, key: str, exercise: str) -> Path:
        """Return the file in which the owner of this workspace, as a reviewer, judged another learner's free text."""
        return self.private / "reviews" / key / f"{exercise}.json"

    def comparison(self, exercise: str) -> Path:
        """Return the file with the tables of the newest comparison of an exercise's runs."""
        return self.deliverables(exercise) / "comparison.md"

    def sweep_deliverable(self, exercise: str, parameter: str, ending: str) -> Path:
        """Return a deliverable of the newest sweep over a parameter. `ending`: the file's ending with its dot."""
        return self.deliverables(exercise) / f"sweep-{parameter}{ending}"

    def report(self, ending: str) -> Path:
        """Return the file of the final report. `ending`: its extension without the dot."""
        return self.deliverables("final") / f"report.{ending}"

    def receipt(self, stamp: str, stack: str) -> Path:
        """Return the file with the receipt of one destroy."""
        return self.receipts / f"{stamp}-{stack}.json"

    def drill(self, run_id: str) -> Path:
        """Return the file with the fault injected into a run, and the learner's diagnoses."""
        return self.drills / f"{run_id}.json"

    def broken_copy(self, exercise: str, suffix: str = "") -> Path:
        """Return the copy of an exercise with a fault in its code. `suffix`: the name under which an earlier copy was saved."""
        return (self.reset_backups / suffix if suffix else self.root) / "broken" / exercise

    def deployment(self, stack: str) -> Path:
        """Return the file with the record of one stack."""
        return self.deployments / f"{stack}.json"

    def stack(self, stack: str) -> StackPaths:
        """Return the files of one stack."""
        return StackPaths(self.private / "stacks" / stack)

    def lock(self, name: str) -> Path:
        """Return the lock file of that name."""
        return self.private / "locks" / f"{name}.lock"

    @property
    def all_ssh_hosts(self) -> Path:
        """Return the pattern that matches `ssh_hosts` of every stack."""
        return self.stack("*").ssh_hosts


class RunPaths(Folder):
    """Every file of one run."""

    record = Place("run.json")
    next_record = Place(".run.json.next")  # the sealed `run.json` before it gets that name: see `workspace.seals`
    plan = Place("plan.json")  # what was launched, node by node
    metrics = Place("metrics.json")  # what the script measured
    verdict = Place("verdict.json")  # the checks on this run
    environment = Place("env.json")  # the machine and software of each node
    hashes = Place("hashes.json")  # the SHA-256 of every other file of this run
    screen = Place("screen.svg")  # what the learner saw
    logs = Place("logs")  # the raw logs, one for each rank and each launcher
    outputs = Place("outputs")  # what the nodes' scripts wrote, one folder for each node
    transcript = Place("transcript.txt")  # what a session in the learner's terminal showed, as clean text
    batch_setup = Place("setup.sh")  # what a batch file that the learner wrote reads first
    sweep = Place("sweep.json")  # every value of a sweep, with its run
    sweep_table = Place("sweep.md")  # the table over all values

    def yours_file(self, file: str) -> Path:
        """Return the learner's file as it was when the run started."""
        return self.folder / "yours" / file

    def edited_file(self, file: str) -> Path:
        """Return a file of the exercise that the learner had edited, as it was when the run started."""
        return self.folder / "edited" / file

    def rank_log(self, node: str, rank: int | None) -> Path:
        """Return the raw log of one rank, or of the node's launcher if `rank` is None."""
        return self.logs / (f"{node}-launcher.log" if rank is None else f"{node}-rank{rank}.log")

    def rank_times(self, node: str, rank: int | None) -> Path:
        """Return the file with the arrival times of a log's pieces. Each line has the offset of a piece's end and the seconds
        since the epoch."""
        return self.rank_log(node, rank).with_suffix(".times")

    def all_logs(self) -> dict[tuple[str, int | None], Path]:
        """Return the logs that have arrived, by node and rank: first the ranks in order, then the launchers, whose rank is
        None."""
        logs: dict[tuple[str, int | None], Path] = {}
        for path in self.logs.glob("*.log"):
            if match := _LOG.fullmatch(path.name):
                logs[match["node"], int(match["rank"]) if match["rank"] else None] = path
        return dict(sorted(logs.items(), key=lambda item: (item[0][1] is None, item[0][1] or 0, item[0][0])))

    def node_outputs(self, node: str) -> Path:
        """Return the folder of one node's outputs."""
        return self.outputs / node

    def transfer(self, node: str) -> Path:
        """Return the temporary folder for one node's files that are complete but do not have their final names yet."""
        return self.folder / f".transfer-{node}"

    def node_metrics(self, node: str) -> Path:
        """Return the metrics file of one node's script."""
        return self.node_outputs(node) / "metrics.json"

    def node_queue(self, node: str) -> Path:
        """Return the file with Slurm's queue as that node showed it while jobs waited."""
        return self.node_outputs(node) / "squeue.txt"

    def batch(self, name: str) -> Path:
        """Return a file that was passed to sbatch."""
        return self.folder / f"{name}.sbatch"

    def plot(self, name: str, ending: str) -> Path:
        """Return a picture of this run."""
        return self.folder / f"{name}.{ending}"
