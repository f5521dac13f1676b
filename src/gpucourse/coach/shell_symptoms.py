"""The symptoms that a shell reports: a batch file that it cannot read, and commands that are not on the node."""

from __future__ import annotations

from gpucourse.coach.symptom import Symptom

_WHERE = r"(?m)^(?:\d+: )?(?P<file>[^\s:]+): line (?P<line>\d+): "
_ELSEWHERE = r"(?![\s\S]*Traceback(?![\s\S]*ModuleNotFoundError))"  # a script that started and failed has another symptom
_ENDED = r"(?![\s\S]*Traceback)"  # the shell continues after these

SHELL_SYMPTOMS: tuple[Symptom, ...] = (
    Symptom(
        word="shell-syntax",
        title="The shell cannot read the script, near line {line}",
        signs=(
            _WHERE + r"(?P<what>syntax error[^\n]*)",
            _WHERE + r"(?P<what>unexpected EOF[^\n]*)",
            _WHERE + r"(?P<what>[^\n]*unterminated[^\n]*)",
            _WHERE + r"(?P<what>[^\n]*bad substitution)" + _ENDED,
            _WHERE + r"warning: (?P<what>here-document [^\n]*)" + _ENDED,
        ),
        why="The shell says of line {line}: {what}. A quote, a bracket, an `if` or a `do` that is not closed is found where "
        "the file ends, or at the next one of its kind: the mistake is in that line or above it.",
        next="bash -n FILE reads the file without running it, and shellcheck FILE names the quote that is open",
    ),
    Symptom(
        word="no-modules",
        title="There is no `module` command on {node}",
        signs=(
            _WHERE + r"module: command not found" + _ELSEWHERE,
            r"(?m)^(?P<file>[^\s:]+): (?P<line>\d+): module: not found" + _ELSEWHERE,
        ),
        why="Line {line} loads software with `module` (Environment Modules, or Lmod), as on the cluster that it was "
        "written for. Here software is installed as it is, or the shell of a job does not read the file that defines "
        "`module`.",
        next="leave the `module` lines out and name the Python that has the packages; on a cluster with modules put "
        "`source /etc/profile` above them, or begin the file with #!/bin/bash -l",
    ),
    Symptom(
        word="command-missing",
        title="A command is missing on {node}",
        signs=(_WHERE + r"(?P<name>[^\s:]+): command not found" + _ELSEWHERE,),
        why="Line {line} of the script starts {name}, and {node} has no such program, or it is not on the PATH of a job.",
        next="gpucourse ssh {module} -- type -a {name}; install it there, or name it with its whole path",
        general=True,
    ),
    Symptom(
        word="command-missing",
        title="A path in the script is missing on {node}",
        signs=(_WHERE + r"(?P<name>/\S+): No such file or directory" + _ELSEWHERE,),
        why="Line {line} of the script starts, reads or writes {name}: {node} has no such program or file, or lacks the folder "
        "that it belongs in.",
        next="gpucourse ssh {module} -- ls -ld {name}; correct the path, or make the folder on the node",
        general=True,
    ),
)
