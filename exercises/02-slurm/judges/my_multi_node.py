"""Judge my_multi_node.sbatch of 2.3: its requests as sbatch reads them, and the variables of each process that srun starts."""

from __future__ import annotations

import os
import re
from dataclasses import replace

import requests_of_file as file_requests

from gpucourse.judge import Part, Way
from gpucourse.judge.batch import NOTE, Call, Execution, Place, blame_comments, execute, read_options, read_srun
from gpucourse.judge.verdict import Verdict
from gpucourse.outside.slurm_options import SlurmOptions, expand

SCRIPT, CHECK = "multi_node.py", "check_machine.py"
FILES = (SCRIPT, CHECK)
ARGUMENTS = ("--elements=100",)
JOBS = ("4711", "7", "123456", "60000")
LAYOUTS = ((2, 1), (3, 1), (2, 2), (1, 3))  # machines, processes on each

WAYS = {
    "below-command": Way(file_requests.BELOW_COMMAND, ("#SBATCH --nodes=2", "set -u\n#SBATCH --nodes=2")),
    "no-gpu": Way(file_requests.NO_GPU, ("#SBATCH --gres=gpu:1\n", "")),
    "seconds": Way(file_requests.SECONDS, ("--time=00:10:00", "--time=600")),
    "one-file": Way(
        "all processes would write to {name}: {files} for {ranks} processes. The name needs the machine and the number of "
        "the process, so that each process has its own file",
        ("logs/%N-rank%t.log", "logs/all.log"),
    ),
    "no-srun": Way(
        "python ran {times} on {machines} machines. Your file runs once, on the first machine of the job; only what srun "
        "starts runs on all of them. The other machines would keep their GPUs and do nothing",
        ("srun --kill-on-bad-exit=1 --output=logs/%N-rank%t.log bash", "bash"),
    ),
    "same-rank": Way(
        "every process got {name} {value}. The shell of your file filled in the value once, on the first machine, before srun "
        "started anything. If the command is in single quotes, or in a separate file, each process fills in its own value",
        ('bash -c \'\n  export RANK="$SLURM_PROCID"', 'env RANK="$SLURM_PROCID" bash -c \'\n  export'),
        seen="every process got {name} {value}",
    ),
    "local-rank": Way(
        "LOCAL_RANK counted the processes of the whole job ({given}); expected {right}. It counts those of one machine, and "
        "chooses the GPU there: the second machine has a GPU 0, too",
        ('LOCAL_RANK="$SLURM_LOCALID"', 'LOCAL_RANK="$SLURM_PROCID"'),
    ),
    "fixed-size": Way(
        "WORLD_SIZE was {given} for {right} processes. SLURM_NTASKS is the number of processes, even if --nodes=3 is added "
        "to the command. With a different number, processes wait for others that never arrive, or some are left out",
        ('WORLD_SIZE="$SLURM_NTASKS"', "WORLD_SIZE=2"),
    ),
    "own-address": Way(
        "the processes would wait at different addresses: {given}. MASTER_ADDR is one address for all, the first machine of "
        "the job",
        ("exec python", 'export MASTER_ADDR="$SLURMD_NODENAME"; exec python'),
    ),
    "fixed-port": Way(
        "MASTER_PORT was {port} for every job. Two jobs may share a machine, and the second would find the port taken, or "
        "meet the processes of the first: compute it from SLURM_JOB_ID",
        ("20000 + SLURM_JOB_ID % 10000", "29500"),
    ),
    "others-wait": Way(
        "when one process fails, the others wait for it until the time limit, and hold their GPUs: srun ends the step only if "
        "you ask it to",
        ("srun --kill-on-bad-exit=1 ", "srun "),
    ),
    "not-checked": Way(
        "{script} started on machines that were not checked. Before it starts, work/{check} has to succeed on each machine, "
        "once. (An older my_multi_node.sbatch does not ask for this.)",
        ('srun --ntasks="$SLURM_NNODES" python -u work/check_machine.py || exit 1\n', ""),
    ),
    "machine-left-out": Way(
        "work/{check} ran on {given}, but the job has {machines} machines: the machine that was not checked may be the broken "
        "one",
        ('srun --ntasks="$SLURM_NNODES" python -u work/check', "python -u work/check"),
    ),
    "checked-again": Way(
        "work/{check} ran {times} times on {machines} machines, because this step of srun has {tasks}. Once on each machine is "
        "enough. (srun takes the number of its processes from SLURM_NTASKS unless you name one, and then ignores a smaller "
        "--ntasks-per-node with a warning.)",
        ('srun --ntasks="$SLURM_NNODES" python', "srun --ntasks-per-node=1 python"),
    ),
    "checked-too-late": Way(
        "{script} started before work/{check} had run on all machines: a broken machine is then found when all others already "
        "wait for it",
        (
            'srun --ntasks="$SLURM_NNODES" python -u work/check_machine.py || exit 1',
            "trap 'srun --ntasks=\"$SLURM_NNODES\" python -u work/check_machine.py' EXIT",
        ),
    ),
    "check-ignored": Way(
        "in a trial work/{check} failed on node2, and {script} started all the same: what does your file do with the exit code "
        "of the check?",
        ("work/check_machine.py || exit 1", "work/check_machine.py"),
    ),
    "hides-check": Way(
        "in a trial work/{check} failed on node2, and your file ended with code 0: Slurm would call the job COMPLETED",
        ("work/check_machine.py || exit 1", "work/check_machine.py || exit 0"),
    ),
    "hides-failure": Way(
        "in a trial the command failed on every machine, but your file ended with code 0. A job's exit code is that of the "
        "file's last command, so Slurm would call it COMPLETED",
        ('\' bash "$@"', '\' bash "$@"\necho done'),
    ),
}


def judge(part: Part) -> None:
    """Judge the requests, then every process of four layouts, then the file's exit code if the command fails."""
    options = read_options(part)
    with blame_comments(options):
        file_requests.check(part, options, machines=2, processes=2)
        _check_wider(options)
        file_requests.check_output(part, options, file_requests.TWO_JOBS, "logs/4711-node1.out")
    ports = set()
    for number, (machines, per_node) in zip(JOBS, LAYOUTS, strict=True):
        place = Place(nodes=machines, per_node=per_node, job=number, arguments=ARGUMENTS, files=FILES)
        case = f"{file_requests.count(machines, 'machine')}, {file_requests.count(per_node, 'process')} on each"
        job = execute(part, place, case=case)
        calls = file_requests.check_calls(part, job, SCRIPT)
        _check_srun(part, job, calls, machines, per_node, case)
        _check_ranks(part, calls, machines, per_node, case)
        ports.add(_check_meeting(part, calls, number, case))
        _check_machines(part, job, machines, per_node, case)
    if len(ports) == 1:
        raise part.wrong("fixed-port", f"jobs {', '.join(JOBS)}", port=ports.pop())
    if any(call.value("--elements") is None for call in calls):
        raise Verdict(
            "failed", "no-arguments", f'the arguments of your file ("$@") do not reach {SCRIPT}: {" ".join(calls[0].words)}'
        )
    if execute(part, _fail(f"*{SCRIPT}*")).code == 0:
        raise part.wrong("hides-failure")
    trial = execute(part, _fail(f"node2*{CHECK}*"))
    if trial.list_runs_of(SCRIPT):
        raise part.wrong("check-ignored", script=SCRIPT, check=CHECK)
    if trial.code == 0:
        raise part.wrong("hides-check", check=CHECK)
    if not _ends_others(part, job, calls[0]):
        raise part.wrong("others-wait")
    part.note(f"right for {len(LAYOUTS)} layouts of machines and processes")


def _fail(pattern: str) -> Place:
    """Return a job on two machines. Its python fails if the machine's name and the arguments match the shell's `pattern`."""
    code = f'ENDS_WITH=0\ncase "$SLURMD_NODENAME $*" in {pattern}) ENDS_WITH=3;; esac\n'
    python = NOTE.replace("\n", f"\n{code}", 1)
    return Place(nodes=2, arguments=ARGUMENTS, files=FILES, programs=dict.fromkeys(("python", "python3"), python))


def _check_machines(part: Part, job: Execution, machines: int, per_node: int, case: str) -> None:
    """Check that each machine was checked once, before any process started. Raises Verdict."""
    words = {"script": SCRIPT, "check": CHECK, "machines": machines}
    checks = job.list_runs_of(CHECK)
    if not checks:
        raise part.wrong("not-checked", case, **words)
    nodes = {call.variables.get("SLURMD_NODENAME", "") for call in checks}
    if {f"node{number + 1}" for number in range(machines)} - nodes:
        raise part.wrong("machine-left-out", case, **words, given=_list(sorted(nodes)))
    if len(checks) > machines:
        tasks = file_requests.count(machines * per_node, "process")
        raise part.wrong("checked-again", case, **words, times=len(checks), tasks=tasks)
    if job.calls.index(checks[-1]) > job.calls.index(job.list_runs_of(SCRIPT)[0]):
        raise part.wrong("checked-too-late", case, **words)


def _ends_others(part: Part, job: Execution, call: Call) -> bool:
    """Return whether srun ends the other processes when one fails, by an option or by its variable."""
    srun = job.find_srun(call)
    values = read_srun(srun).values if srun else {}
    by_variable = re.search(r"^[^#\n]*\bSLURM_KILL_BAD_EXIT=[\"']?1\b", part.text, re.MULTILINE)
    return values.get("kill-on-bad-exit", "0") != "0" or values.get("wait", "0") != "0" or by_variable is not None


def _check_wider(options: SlurmOptions) -> None:
    """Check the number of processes if --nodes=3 is added to the command. Raises Verdict."""
    tasks = replace(options, values=options.values | {"nodes": "3"}).tasks
    if tasks != 3:
        processes = file_requests.count(tasks, "process")
        says = f"with --nodes=3 added to the command your file asks for {processes} on 3 machines; expected 3"
        raise Verdict("failed", "layout", f"{says} (--ntasks-per-node)")


def _check_srun(part: Part, job: Execution, calls: list[Call], machines: int, per_node: int, case: str) -> None:
    srun = job.find_srun(calls[0])
    if srun is None:
        times = "once" if len(calls) == 1 else f"{len(calls)} times"
        raise part.wrong("no-srun", case, times=times, machines=machines)
    if calls[0].program == "torchrun":
        raise Verdict(
            "failed", "torchrun", "torchrun starts its own processes; here srun starts each process, which is python", case
        )
    options = read_srun(srun)
    if len(calls) != machines * per_node:
        raise Verdict(
            "failed",
            "too-few",
            f"{len(calls)} processes ran {SCRIPT}; expected {machines * per_node}, one for each task",
            case,
        )
    pattern = options.values.get("output")
    if pattern is None:
        raise part.wrong("one-file", case, name="the file of the job", files="one file", ranks=machines * per_node)
    spread = [
        expand(pattern, {"N": f"node{rank // per_node + 1}", "t": str(rank), "n": str(rank // per_node)})
        for rank in range(machines * per_node)
    ]
    if len(set(spread)) < len(spread):
        files = f"{len(set(spread))} file{'s' if len(set(spread)) > 1 else ''}"
        raise part.wrong("one-file", case, name=pattern, files=files, ranks=len(spread))
    first = os.path.normpath(srun.folder / spread[0])
    if first != str(job.folder / "logs" / "node1-rank0.log"):
        raise Verdict("failed", "output", f"srun --output={pattern} makes {spread[0]}; expected logs/node1-rank0.log", case)


def _check_ranks(part: Part, calls: list[Call], machines: int, per_node: int, case: str) -> None:
    ranks = list(range(machines * per_node))
    for name in ("RANK", "WORLD_SIZE", "LOCAL_RANK"):
        if any(name not in call.variables for call in calls):
            raise Verdict(
                "failed", "not-set", f"{name} is not set in the processes that srun starts, or not exported to python", case
            )
    values = {name: [call.variables[name] for call in calls] for name in ("RANK", "WORLD_SIZE", "LOCAL_RANK")}
    if len(ranks) > 1 and len(set(values["RANK"])) == 1:
        raise part.wrong("same-rank", case, output=_list_ranks(part), name="RANK", value=values["RANK"][0])
    if values["RANK"] != [str(rank) for rank in ranks]:
        raise Verdict("failed", "rank", f"RANK was {_list(values['RANK'])}; expected {_list(ranks)} (SLURM_PROCID)", case)
    if set(values["WORLD_SIZE"]) != {str(len(ranks))}:
        raise part.wrong("fixed-size", case, given=values["WORLD_SIZE"][0], right=len(ranks))
    right = [str(rank % per_node) for rank in ranks]
    if values["LOCAL_RANK"] == values["RANK"] != right:
        raise part.wrong("local-rank", case, given=_list(values["LOCAL_RANK"]), right=_list(right))
    if values["LOCAL_RANK"] != right:
        raise Verdict(
            "failed", "local", f"LOCAL_RANK was {_list(values['LOCAL_RANK'])}; expected {_list(right)} (SLURM_LOCALID)", case
        )


def _list_ranks(part: Part) -> list[list[str]]:
    """Return the RANK of each process in each layout."""
    places = [Place(nodes=nodes, per_node=per_node, arguments=ARGUMENTS, files=FILES) for nodes, per_node in LAYOUTS]
    runs = [execute(part, place).list_runs_of(SCRIPT) for place in places]
    return [[call.variables.get("RANK", "") for call in calls] for calls in runs]


def _check_meeting(part: Part, calls: list[Call], number: str, case: str) -> str:
    """Return the port where the processes meet. Raises Verdict if they would not meet."""
    addresses = [call.variables.get("MASTER_ADDR", "nothing") for call in calls]
    if len(set(addresses)) > 1:
        raise part.wrong("own-address", case, given=_list(addresses))
    if addresses[0] not in {"node1", "10.0.0.1"}:
        raise Verdict(
            "failed", "address", f"MASTER_ADDR was {addresses[0]}; the first machine is node1, its address 10.0.0.1 here", case
        )
    ports = {call.variables.get("MASTER_PORT", "nothing") for call in calls}
    port = ports.pop()
    if ports or not port.isdigit() or not 20000 <= int(port) <= 29999:
        raise Verdict(
            "failed",
            "port",
            f"MASTER_PORT was {port}; expected one port for all, from 20000 to 29999 (job {number} here)",
            case,
        )
    return port


def _list(values: list[str] | list[int]) -> str:
    return ", ".join(map(str, values))
