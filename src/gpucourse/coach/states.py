"""Diagnose a run from the ranks that were killed, were lost, left early, fell silent or never started."""

from __future__ import annotations

import re
from collections.abc import Sequence
from signal import Signals

from gpucourse.coach.evidence import Evidence, Log
from gpucourse.model.diagnosis import Diagnosis, LogQuote, Silence
from gpucourse.model.fields import EXERCISE_ID

_KILLED, _SIGNALS = 137, 128
_LAST_SIGNAL = 64  # larger numbers are exit codes, not signals: Slurm's commands end with 255
_UNOPENED = _SIGNALS + 53
"""Slurm ends a job with signal 53 if it cannot open the job's output or error file."""
_CRASHES = {132: "SIGILL", 134: "SIGABRT", 135: "SIGBUS", 136: "SIGFPE", 139: "SIGSEGV"}
_EARLIER_EXERCISE = re.compile(rf"run (?P<exercise>{EXERCISE_ID[1:-1]}) first \(gpucourse run (?P=exercise)\)")
"""What a script says if it needs the results of another exercise."""
_MISSING_KEY = re.compile(
    r"wait timeout after \d+ms, keys: \S*?/(?P<missing>\d+)\s*$"
    r"|(?:\d+/(?P<told>\d+) (?:clients|workers) joined|world_size=(?P<size>\d+), worker_count=\d+)",
    re.MULTILINE,
)
"""Messages about the missing rank for which the process group's store waited. gloo waits for the ranks' keys one by one."""


def diagnose_join(evidence: Evidence) -> list[Diagnosis]:
    """Diagnose ranks that waited at the rendezvous for a missing rank. The missing rank does not exist, was not started, or
    waits as well."""
    waiting: dict[int, list[Log]] = {}
    for log in evidence.suspects() if evidence.planned else ():  # without a plan, the missing rank is unknown
        for match in _MISSING_KEY.finditer(log.telling_text):
            missing = (
                int(match["missing"]) if match["missing"] else _find_missing_rank(evidence, int(match["told"] or match["size"]))
            )
            if log not in waiting.setdefault(missing, []):
                waiting[missing].append(log)
    return [
        _diagnose_missing_rank(evidence, missing, logs) for missing, logs in sorted(waiting.items(), key=lambda item: -item[0])
    ][:1]


def diagnose_ends(evidence: Evidence, *, victims: Sequence[Log]) -> list[Diagnosis]:
    """Diagnose lost nodes, ranks that a signal ended, and ranks that ended normally while others still needed them.

    `victims` are the logs that report failures of other ranks. A watchdog may also have ended these ranks with a signal.
    """
    lost_nodes = [node_exit.node for node_exit in evidence.node_exits if node_exit.reason == "lost"]
    if lost_nodes or evidence.lost:
        return [_diagnose_lost_nodes(evidence, lost_nodes)]
    failures = _find_own_failures(evidence, victims)
    if failures and failures[0].code == _KILLED:
        return [_diagnose_killed_rank(evidence, failures[0], victims)]
    if failures and failures[0].code in _CRASHES:
        return [_diagnose_crash(evidence, failures[0])]
    early_ends = [log for log in evidence.logs if log.rank is not None and log.code == 0]
    return [_diagnose_early_exit(evidence, early_ends)] if early_ends and victims and not failures else []


def diagnose_silences(
    evidence: Evidence, *, waiting: bool, victims: Sequence[Log], unconnected: Sequence[Diagnosis] = ()
) -> list[Diagnosis]:
    """Diagnose ranks that ended without a known reason, printed nothing, never began, or reached the time limit.

    `unconnected` are the diagnoses of ranks that could not connect. They also explain why the other ranks are silent.
    """
    failures = _find_own_failures(evidence, victims)
    if failures and not waiting:  # the others waited for it, and were silent for that reason
        return [
            _diagnose_exit(evidence, failures[0]),
            *(_diagnose_silent_ranks(evidence, [silence]) for silence in evidence.silences if silence.doing == "stopped"),
        ]
    if unconnected:
        return list(unconnected)
    ranks_with_logs = {log.rank for log in evidence.logs}
    absent = [rank for ranks in evidence.planned.values() for rank in ranks if rank not in ranks_with_logs]
    if absent and len(absent) < evidence.world_size:
        return [_diagnose_unstarted_ranks(evidence, absent)]
    timed_out = evidence.state == "timed_out"
    silent = _culprits(evidence.silences) or (_find_absent_ranks(evidence) if waiting or timed_out else [])
    if silent and not all(silence.doing == "not started" or silence.rank in absent for silence in silent):
        by_nature = timed_out and not any(silence.last or silence.doing == "stopped" for silence in silent)
        return [
            *([_diagnose_time_limit(evidence)] if by_nature and len(silent) < evidence.world_size else []),
            _diagnose_silent_ranks(evidence, silent),
        ]
    if (absent and timed_out) or silent:
        return [_diagnose_unstarted_ranks(evidence, absent or [silence.rank for silence in silent])]
    return [_diagnose_time_limit(evidence)] if timed_out else []


def _find_own_failures(evidence: Evidence, victims: Sequence[Log]) -> list[Log]:
    """Return the ranks that failed on their own, in the order in which they ended. Ranks that gpucourse ended, and victims of
    another rank, are left out.
    """
    return [
        log
        for log in evidence.suspects()
        if log.rank is not None and log.code is not None and not log.ended_by_us and log not in victims
    ]


def _diagnose_logs(symptom: str, logs: list[Log], title: str, *, explanation: str, advice: str) -> Diagnosis:
    """Return a diagnosis of the ranks of these logs, with the last line of each log."""
    nodes = [log.node for log in logs]
    return Diagnosis(
        symptom=symptom, title=title, why=explanation, next=advice, ranks=_ranks(logs), nodes=nodes, seen=_last_words(logs)
    )


def _diagnose_exit(evidence: Evidence, log: Log) -> Diagnosis:
    code = log.code or 0
    if code == _UNOPENED:
        return _diagnose_unopened_output(evidence, log)
    manner = f"by {_signal(code - _SIGNALS)}" if _SIGNALS < code <= _SIGNALS + _LAST_SIGNAL else f"with code {code}"
    sequel = "Its last line may say why." if log.last else "It had printed nothing."
    if evidence.world_size > 1:
        sequel += " Others that were still at work waited for it, or were ended after it."
    return _diagnose_logs(
        "rank-exited",
        [log],
        f"Rank {log.rank} on {log.node} ended {manner}",
        explanation=f"The process of rank {log.rank} ended by itself {manner}, without a traceback. {sequel}",
        advice=f"gpucourse run {earlier['exercise']}"
        if (earlier := _EARLIER_EXERCISE.search(log.last))
        else f"gpucourse logs {evidence.run} --rank {log.rank}; look for sys.exit in the script",
    )


def _diagnose_unopened_output(evidence: Evidence, log: Log) -> Diagnosis:
    return _diagnose_logs(
        "rank-exited",
        [log],
        f"Slurm could not open the output or error file of the job on {log.node or 'its node'}",
        explanation="The job ended with signal 53 before its first line ran: Slurm reports this signal if it cannot open the "
        "file named by --output or --error. Its folder has to exist on the job's node, and you need permission to write there.",
        advice=f"make the folder, or name another file in #SBATCH --output and --error; then gpucourse run {evidence.exercise}",
    )


def _signal(number: int) -> str:
    try:
        return f"signal {number} ({Signals(number).name})"
    except ValueError:
        return f"signal {number}"


def _find_missing_rank(evidence: Evidence, named_rank: int) -> int:
    """Return the missing rank, given the world size that a process reported. If this is larger than planned, the missing rank
    is the last rank of that world; otherwise it is a rank without a log."""
    if named_rank > evidence.world_size:
        return named_rank - 1
    ranks_with_logs = {log.rank for log in evidence.logs}
    return next((rank for rank in range(evidence.world_size) if rank not in ranks_with_logs), evidence.world_size - 1)


def _diagnose_missing_rank(evidence: Evidence, missing: int, waiting: list[Log]) -> Diagnosis:
    ranks, nodes = _ranks(waiting), [log.node for log in waiting]
    quotes = [log.quote(match.start()) for log in waiting for match in _MISSING_KEY.finditer(log.telling_text)][:3]
    names = _name_ranks(ranks)
    next_step = f"print $RANK and $WORLD_SIZE in each rank; the correct commands: gpucourse run {evidence.exercise} --dry-run"
    if missing >= evidence.world_size:
        symptom, title = "wrong-world-size", f"{names} waited for rank {missing}, which was never started"
        explanation = (
            f"{names} {'was' if len(ranks) == 1 else 'were'} started with a world size of at least {missing + 1}, but only "
            f"{evidence.world_size} ranks exist. init_process_group returns only when all ranks have joined, so the ranks "
            "wait for one that never comes. A wrong --nnodes, --nproc-per-node or WORLD_SIZE is the usual reason."
        )
    elif evidence.rank(missing) in waiting:
        symptom, title = "rank-mismatch", f"Two processes have the same rank, and none is rank {missing}"
        explanation = (
            f"All {evidence.world_size} processes were started, and none of them joined as rank {missing}: two took the same "
            "rank. RANK set by hand, or --node-rank typed twice, is the usual reason."
        )
    else:
        ranks, nodes = [missing], [evidence.node_of(missing)]
        symptom, title = "hang-at-init", f"Rank {missing} on {nodes[0]} did not join"
        explanation = (
            f"{names} waited in init_process_group for rank {missing}. That rank was not started, is stuck before it joins, or "
            "has another address as its meeting point."
        )
        next_step = f"gpucourse logs {evidence.run} --rank {missing}; gpucourse status shows whether {nodes[0]} is alive"
    return Diagnosis(symptom=symptom, title=title, why=explanation, next=next_step, ranks=ranks, nodes=nodes, seen=quotes)


def _diagnose_lost_nodes(evidence: Evidence, nodes: list[str]) -> Diagnosis:
    names = " and ".join(nodes) or "a node"
    return Diagnosis(
        symptom="node-lost",
        title=f"{names} {'were' if len(nodes) > 1 else 'was'} lost",
        why=f"{evidence.lost or f'{names} stopped answering while ranks ran there'}. The ranks there were lost as well; the "
        f"others wait for them until their timeout.",
        next=f"gpucourse status shows which nodes are alive; gpucourse deploy {evidence.module} repairs them; then run again",
        nodes=nodes,
    )


def _diagnose_killed_rank(evidence: Evidence, log: Log, victims: Sequence[Log]) -> Diagnosis:
    consequence = ""
    if victims:
        consequence = " The others lost their peer in the middle of a collective."
    elif evidence.world_size > 1:
        consequence = " Others that were still at work were ended after it."
    return _diagnose_logs(
        "rank-killed",
        [log],
        f"Rank {log.rank} on {log.node} was killed",
        explanation=f"Rank {log.rank} ended by signal 9 without a message: another process killed it, or the kernel did "
        f"because memory ran out.{consequence}",
        advice=f"dmesg | grep -i 'out of memory' on {log.node} (gpucourse ssh {evidence.module}); if it prints nothing, "
        f"another process killed the rank",
    )


def _diagnose_crash(evidence: Evidence, log: Log) -> Diagnosis:
    return _diagnose_logs(
        "rank-crashed",
        [log],
        f"Rank {log.rank} on {log.node} crashed ({_CRASHES[log.code or 0]})",
        explanation=f"The process of rank {log.rank} crashed in native code, because of a bug in a library or an "
        f"extension, or a collective whose tensors do not match.",
        advice=f"gpucourse logs {evidence.run} --rank {log.rank}; PYTHONFAULTHANDLER=1 shows where it crashed",
    )


def _diagnose_early_exit(evidence: Evidence, logs: list[Log]) -> Diagnosis:
    names = _name_ranks(_ranks(logs))
    return _diagnose_logs(
        "left-early",
        logs,
        f"{names} had already exited",
        explanation=f"{names} exited normally, but the others still call collectives. The usual reasons are shares of the data "
        "that differ by one batch, or a collective that only some ranks call.",
        advice=f"count the steps of every rank: gpucourse logs {evidence.run} --fold; DistributedSampler(drop_last=True) makes "
        f"shares equal",
    )


def _diagnose_unstarted_ranks(evidence: Evidence, ranks: list[int]) -> Diagnosis:
    nodes = list(dict.fromkeys(evidence.node_of(rank) for rank in ranks))
    return Diagnosis(
        symptom="never-started",
        title=f"{_name_ranks(ranks)} never started",
        why=f"The launcher on {' and '.join(nodes)} started no process: launchers wait for each other until all nodes have "
        "joined, with the same --nnodes, --master-addr and --master-port.",
        next=f"gpucourse logs {evidence.run} shows what the launchers report; gpucourse run {evidence.exercise} --dry-run "
        f"prints their commands",
        ranks=ranks,
        nodes=nodes,
    )


def _diagnose_silent_ranks(evidence: Evidence, silent: list[Silence]) -> Diagnosis:
    ranks = [silence.rank for silence in silent]
    explanations = {
        "stopped": "Its process is stopped by a signal (SIGSTOP): it neither computes nor ends. ",
        "computing": "Its process is computing and does not reach the collective. ",
        "waiting": "Its process waits without using a processor. ",
    }
    explanation = explanations.get(silent[0].doing, "") if len(silent) == 1 else ""
    longest = max(silence.seconds for silence in silent)
    since = f" for {longest:.0f} s" if longest else ""
    logs = f"gpucourse logs {evidence.run}"
    log_hint = f"{logs} --rank {ranks[0]}:" if len(ranks) == 1 else f"{logs} --times shows which rank fell silent first;"
    return Diagnosis(
        symptom="silent-rank",
        title=f"{_name_ranks(ranks)} fell silent",
        why=f"{_name_ranks(ranks)} printed nothing{since} while the run continued. {explanation}A hang in the middle means "
        "that one rank calls different collectives from the rest, or hangs in something else: a read, a lock, a loop.",
        next=f"{log_hint} what does the script do after that rank's last line?",
        ranks=ranks,
        nodes=list(dict.fromkeys(silence.node for silence in silent)),
        seen=[LogQuote(node=silence.node, rank=silence.rank, line=silence.last) for silence in silent if silence.last][:3],
    )


def _diagnose_time_limit(evidence: Evidence) -> Diagnosis:
    return Diagnosis(
        symptom="time-limit",
        title="Not finished by the time limit",
        why="The run reached its time limit while all ranks were still at work, so they were ended.",
        next=f"gpucourse run {evidence.exercise} --timeout 30m, or less work: fewer steps, a smaller model",
    )


def _culprits(silences: tuple[Silence, ...]) -> list[Silence]:
    """Return the silent ranks to look at. If any of them is stopped, computing or not started, leave out those that only
    wait."""
    busy = [silence for silence in silences if silence.doing in {"stopped", "computing", "not started"}]
    return busy or list(silences)


def _find_absent_ranks(evidence: Evidence) -> list[Silence]:
    """Return the ranks that were still running when others timed out in a collective, and that gpucourse had to end. Return an
    empty list if this is true of all ranks."""
    logs = [log for log in evidence.logs if log.rank is not None and (log.ended_by_us or log.code is None)]
    if len(logs) == sum(log.rank is not None for log in evidence.logs):
        return []
    return [Silence(node=log.node, rank=log.rank or 0, seconds=0.0, last=log.last) for log in logs]


def _ranks(logs: list[Log]) -> list[int]:
    return sorted(log.rank for log in logs if log.rank is not None)


def _last_words(logs: list[Log]) -> list[LogQuote]:
    return [LogQuote(node=log.node, rank=log.rank, line=log.last[:400]) for log in logs if log.last][:3]


def _name_ranks(ranks: list[int]) -> str:
    if len(ranks) == 1:
        return f"Rank {ranks[0]}"
    names = [str(rank) for rank in ranks[:6]] + (["more"] if len(ranks) > 6 else [])
    return f"Ranks {', '.join(names[:-1])} and {names[-1]}" if names else "The ranks"
