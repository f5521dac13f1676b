"""Ends this node when nobody has used it for a while. A timer runs it each minute; idle.json shows what it saw.

A node is in use while it is being set up, during a hold, while there is a job of the course or of the scheduler or an open
SSH session, or while a GPU works at 5% or more. If the lab's nodes share a folder, also while another node is in use.
Once none of this was true for IDLE_SECONDS without a break, the node powers itself off, which terminates the instance.

    /var/lib/gpucourse/ready, failed    the set-up has ended, one way or the other
    /var/lib/gpucourse/vllm             "installing UNTIL STEP" while vLLM is installed after the set-up
    /var/lib/gpucourse/hold             seconds since 1970 until which the agent must not act
    /var/lib/gpucourse/idle.json        the agent's last view, and its memory
    /shared/.gpucourse/STACK/in-use/NODE    when that node was last seen in use, in seconds since 1970
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from dataclasses import asdict, dataclass, field, replace

BUSY_GPU_PERCENT = 5.0
JOB_MARK = b"GPUCOURSE_RUN_DIR="
SSH_PORT = 22
_ESTABLISHED = "01"  # in /proc/net/tcp
_SAY = 'mkdir -p "$1" && echo "$3" >"$1/.$2" && mv "$1/.$2" "$1/$2"'
_LAST_TIME = 1e11  # the year 5138: a larger number was not meant as seconds
_IN_USE_S = 180.0  # a node that was in use so recently counts as in use: its agent looks each minute
_GAP_S = 300.0  # after a longer gap (stopped, suspended or stuck), nothing is known about the time between


@dataclass(frozen=True)
class Sight:
    """The state of the node at one moment. `gpu_percent` is the busiest GPU's; None if no GPU was asked or answered.

    `boot` identifies the boot; `hold_until` is in seconds since 1970; `jobs` says what runs, for people; `others` are the nodes
    of the lab that are in use.
    """

    now: float
    boot: str
    set_up: bool
    jobs: tuple[str, ...] = ()
    ssh_sessions: int = 0
    gpu_percent: float | None = None
    hold_until: float = 0.0
    others: tuple[str, ...] = ()
    installing: str = ""  # the current step of the installation of vLLM; empty when it is over


@dataclass(frozen=True)
class View:
    """The agent's conclusion, which it remembers for the next time.

    `busy`: why the node is in use; empty while it is idle. `idle_since`: None while in use. `end`: power off now.
    """

    now: float
    boot: str
    busy: tuple[str, ...] = ()
    idle_since: float | None = None
    ends_at: float | None = None
    end: bool = False
    version: int = field(default=1, kw_only=True)


def decide(seen: Sight, before: View | None, limit_s: float) -> View:
    """Return whether the node is idle, since when, and whether for `limit_s`."""
    busy = reasons(seen)
    if busy:
        return View(seen.now, seen.boot, busy)
    since = seen.now
    if before and before.idle_since is not None and before.boot == seen.boot and 0 <= seen.now - before.now <= _GAP_S:
        since = before.idle_since
    return View(seen.now, seen.boot, (), since, since + limit_s, end=seen.now - since >= limit_s)


def reasons(seen: Sight) -> tuple[str, ...]:
    """Return why the node is in use, for people; empty if it is idle."""
    uses = []
    if not seen.set_up:
        uses.append("the set-up is not over")
    if seen.installing:
        uses.append(f"vLLM is being installed: {seen.installing}")
    if seen.now < seen.hold_until:
        uses.append(f"held until {_clock(seen.hold_until)}")
    uses += seen.jobs
    if seen.ssh_sessions:
        uses.append(f"SSH sessions: {seen.ssh_sessions}")
    # A driver that does not answer must not keep a node alive: it has no job and no session, and the hours are billed.
    if seen.gpu_percent is not None and seen.gpu_percent >= BUSY_GPU_PERCENT:
        uses.append(f"GPU at {seen.gpu_percent:.0f}%")
    uses += [f"{name} is in use" for name in seen.others]
    return tuple(uses)


@dataclass(frozen=True)
class Machine:
    """This node, under `root` (empty on a node, a folder in tests). `lab` is the folder in which the nodes of its lab say that
    they are in use; empty if they share none."""

    root: str = ""
    gpus: int = 0
    name: str = ""
    lab: str = ""

    def look(self) -> Sight:
        """Return the state of the node. Query the GPU only if nothing else says that the node is in use: a query costs GPU
        time, and a job there may be a measurement."""
        seen = Sight(
            now=time.time(),
            boot=self._read("/proc/sys/kernel/random/boot_id").strip(),
            set_up=any(os.path.exists(f"{self.root}/var/lib/gpucourse/{name}") for name in ("ready", "failed")),
            jobs=self.course_jobs() + scheduler_jobs(),
            ssh_sessions=self.ssh_sessions(),
            hold_until=self.hold_until(),
            installing=self.read_installation_step(),
        )
        if self.gpus and not reasons(seen):
            seen = replace(seen, gpu_percent=gpu_percent())
        if not self.lab:
            return seen
        if reasons(seen):
            self.say_in_use(seen.now)
            return seen
        return replace(seen, others=self.others_in_use(seen.now))

    def say_in_use(self, now: float) -> None:
        """Tell the other nodes, with a program, so that storage that does not answer cannot block this one for long."""
        run_program("sh", "-c", _SAY, "sh", self.lab, self.name, f"{now:.0f}")

    def others_in_use(self, now: float) -> tuple[str, ...]:
        """Return the nodes that said a short while ago that they are in use."""
        names = []
        for line in run_program("sh", "-c", 'cd "$1" && grep -H . -- node*', "sh", self.lab).splitlines():
            name, _, moment = line.partition(":")
            if name != self.name and moment.isdigit() and abs(now - float(moment)) <= _IN_USE_S:
                names.append(name)
        return tuple(names)

    def course_jobs(self) -> tuple[str, ...]:
        """Return the runs of the course on this node, whose processes have a mark in their environment."""
        names = set()
        for pid in filter(str.isdigit, os.listdir(f"{self.root}/proc")):
            try:
                with open(f"{self.root}/proc/{pid}/environ", "rb") as file:
                    marks = [entry for entry in file.read().split(b"\0") if entry.startswith(JOB_MARK)]
            except OSError:
                continue  # it ended meanwhile
            names |= {os.path.basename(mark[len(JOB_MARK) :].decode("utf-8", "replace")) for mark in marks}
        return tuple(f"run {name}" for name in sorted(names))

    def ssh_sessions(self) -> int:
        """Return the number of connections to the SSH server, from people, programs and other nodes."""
        count = 0
        for table in ("tcp", "tcp6"):
            for row in self._read(f"/proc/net/{table}").splitlines()[1:]:
                cells = row.split()
                count += len(cells) > 3 and cells[3] == _ESTABLISHED and int(cells[1].rpartition(":")[2], 16) == SSH_PORT
        return count

    def read_installation_step(self) -> str:
        """Return the current step of the installation of vLLM; empty if none runs, or if its time is over."""
        state, _, rest = self._read("/var/lib/gpucourse/vllm").strip().partition(" ")
        until, _, name = rest.partition(" ")
        return name if state == "installing" and until.isdigit() and time.time() < float(until) else ""

    def hold_until(self) -> float:
        """Return until when the agent must not act; 0 without a hold, or if it is not a time."""
        try:
            until = float(self._read("/var/lib/gpucourse/hold").strip() or 0)
        except ValueError:
            return 0.0
        return until if 0 <= until < _LAST_TIME else 0.0

    def last_view(self) -> View | None:
        """Return what the agent remembers; None at first, or if that is damaged."""
        try:
            known = json.loads(self._read("/var/lib/gpucourse/idle.json"))
            since = known["idle_since"]
            return View(float(known["now"]), str(known["boot"]), idle_since=None if since is None else float(since))
        except (ValueError, KeyError, TypeError):
            return None

    def remember(self, view: View) -> None:
        """Store the view, completely or not at all."""
        target = f"{self.root}/var/lib/gpucourse/idle.json"
        with open(f"{target}.new", "w", encoding="utf-8") as file:
            json.dump(asdict(view), file)
        os.replace(f"{target}.new", target)

    def _read(self, path: str) -> str:
        try:
            with open(self.root + path, encoding="utf-8", errors="replace") as file:
                return file.read()
        except OSError:
            return ""


def gpu_percent() -> float | None:
    """Return how busy the busiest GPU is; None if the driver does not say. A GPU that is divided (MIG) reports no value: it
    counts as fully busy while any program uses it."""
    shares = run_program("nvidia-smi", "--query-gpu=utilization.gpu", "--format=csv,noheader,nounits").split("\n")
    numbers = [float(share) for share in shares if share.strip().isdigit()]
    if any("N/A" in share for share in shares):
        numbers.append(100.0 if run_program("nvidia-smi", "--query-compute-apps=pid", "--format=csv,noheader").strip() else 0.0)
    return max(numbers, default=None)


def scheduler_jobs() -> tuple[str, ...]:
    """Return the jobs that the cluster's scheduler runs or keeps waiting, on any node."""
    count = len(run_program("squeue", "--noheader").split("\n")) - 1
    return (f"jobs in the scheduler: {count}",) if count > 0 else ()


def run_program(*command: str) -> str:
    """Return a program's output; empty if it is missing, fails or hangs."""
    try:
        done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, timeout=30, check=True)
    except (OSError, subprocess.SubprocessError):
        return ""
    return done.stdout.decode("utf-8", "replace")


def main() -> int:
    """Look once; power off if it is time."""
    root, shared = os.environ.get("GPUCOURSE_ROOT", ""), os.environ.get("SHARED_ADDRESS") and os.environ.get("SHARED_FOLDER")
    lab = f"{root}{shared}/.gpucourse/{os.environ.get('STACK', '')}/in-use" if shared else ""
    machine = Machine(root=root, gpus=int(os.environ.get("GPUS", "0")), name=os.environ.get("NAME", ""), lab=lab)
    limit_s = float(os.environ.get("IDLE_SECONDS", "1800"))
    view = decide(machine.look(), machine.last_view(), limit_s)
    try:
        machine.remember(view)
    except OSError as error:
        print(f"cannot remember what was seen: {error}", file=sys.stderr)
    if view.end:
        reason = f"idle for {limit_s / 60:.0f} minutes: no job, no SSH session, no work on the GPU"
        return subprocess.run([f"{machine.root}/opt/gpucourse/end-node.sh", reason], check=False).returncode
    return 0


def _clock(seconds: float) -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(seconds))


if __name__ == "__main__":
    sys.exit(main())
