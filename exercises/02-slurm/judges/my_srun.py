"""Judges my_srun.sh of 2.2 by the line as srun reads it."""

from __future__ import annotations

from requests_of_file import check_partition

from gpucourse.judge import Part, Way
from gpucourse.judge.batch import Place, execute, is_written, read_srun
from gpucourse.judge.verdict import Verdict
from gpucourse.outside.slurm_options import OptionRefused, SlurmOptions, read_words

SHELLS = ("bash", "sh", "zsh", "dash", "ksh", "tcsh", "fish")
WANTED_S = 1800

WAYS = {
    "no-pty": Way(
        "without --pty the shell has no terminal: it starts and reads what you type, but it shows no prompt, does not pass "
        "Ctrl-C to its commands, and programs such as an editor cannot draw their screen",
        ("--pty ", ""),
    ),
    "no-gpu": Way(
        "your line asks for no GPU. You would be on a GPU node, but CUDA_VISIBLE_DEVICES would be empty: --gres=gpu:1 asks "
        "for one",
        ("--gres=gpu:1 ", ""),
    ),
    "no-command": Way(
        "srun does not know what to start: the line ends with the command, here bash. srun reads its options up to the first "
        "word that is not an option",
        (" bash", ""),
    ),
    "behind-command": Way(
        "{words} is after bash, so it goes to bash, not to srun. Options of srun come before the command",
        ("--gres=gpu:1 --time=00:30:00 --pty bash", "--pty bash --gres=gpu:1 --time=00:30:00"),
    ),
    "sbatch": Way(
        "{program} opens no shell on the node: sbatch only submits a file, and salloc reserves the GPU but leaves your "
        "shell where it is. To get a shell on the node, use srun",
        ("srun", "sbatch"),
    ),
    "in-the-background": Way(
        "the line ends with &, so srun runs in the background: the shell on the node is stopped as soon as it wants to read "
        "what you type",
        ("--pty bash", "--pty bash &"),
    ),
    "seconds": Way(
        "--time={given} asks for {minutes:g} minutes. A single number counts minutes; 30:00 is minutes and seconds. It has to "
        "be 30 minutes",
        ("--time=00:30:00", "--time=1800"),
    ),
}


def judge(part: Part) -> None:
    """Judge the one line: its command and its options."""
    if not is_written(part.text):
        raise Verdict("open", sentence="no line yet: it begins with srun")
    job = execute(part, Place())
    calls = [call for call in job.calls if call.program in {"srun", "sbatch", "salloc"}]
    if not calls:
        raise Verdict("failed", "no-srun", f"your line does not start srun: {job.errors or 'it ended without a message'}")
    if calls[0].program != "srun":
        raise part.wrong("sbatch", program=calls[0].program)
    if len(calls) > 1:
        raise Verdict("failed", "too-often", f"{len(calls)} lines start srun; expected one")
    if job.background:
        raise part.wrong("in-the-background")
    options = read_srun(calls[0])
    _check_command(part, options)
    _check_requests(part, options)
    part.note(f"srun would ask for {', '.join(f'--{name}={value}'.rstrip('=') for name, value in options.values.items())}")


def _check_command(part: Part, options: SlurmOptions) -> None:
    if not options.command:
        raise part.wrong("no-command")
    program, *words = options.command
    if program.rpartition("/")[2] not in SHELLS:
        raise Verdict("failed", "command", f"srun would start {program}; expected a shell: bash")
    for_srun = [word for word in words if _is_of_srun(word)]
    if for_srun:
        raise part.wrong("behind-command", words=" ".join(for_srun))


def _is_of_srun(word: str) -> bool:
    """Return whether a word after the shell's name is an option of srun, not of bash."""
    if word in {"--login", "--noprofile", "--norc", "--posix", "--verbose", "--version", "--help"} or not word.startswith("--"):
        return False
    try:
        return bool(read_words([word, "1"]).values)
    except OptionRefused:
        return False


def _check_requests(part: Part, options: SlurmOptions) -> None:
    if "pty" not in options.values:
        raise part.wrong("no-pty")
    if not options.values.get("partition"):
        raise Verdict("failed", "no-partition", "your line names no partition: it would wait in the cluster's default queue")
    check_partition(options)
    if options.gpus == 0:
        raise part.wrong("no-gpu")
    if (options.nodes, options.tasks, options.gpus) != (1, 1, 1):
        raise Verdict(
            "failed",
            "layout",
            f"your line asks for {options.nodes} machines, {options.tasks} shells and {options.gpus} GPUs on each; expected 1 "
            f"of each",
        )
    try:
        seconds = options.seconds
    except OptionRefused as error:
        raise Verdict("failed", "refused", f"srun refuses it: {error}") from None
    if seconds is None:
        raise Verdict(
            "failed", "no-time", "your line has no time limit (--time): a terminal that you forget holds its GPU until the "
            "partition's own limit, or for ever"
        )  # fmt: skip
    if seconds != WANTED_S:
        raise part.wrong("seconds", given=options.values["time"], minutes=seconds / 60)
