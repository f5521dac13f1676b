"""The symptoms of a script and its surroundings: arguments, files, modules, variables, workers. `source` as in `symptoms`."""

from __future__ import annotations

from gpucourse.coach.symptom import Symptom

_OTHER_PROGRAMS = (
    r"srun|slurmstepd|sbatch|salloc|scancel|squeue|sinfo|sacct"
    r"|cc1|collect2|ld:|ld\.|gcc|g\+\+|c\+\+|clang|nvcc|\S*(?:\(\d+\)|:\d+)(?::\d+)*:"
)
"""Programs that write `NAME: error: ` as argparse does but are not scripts: Slurm's commands, and compilers, which name a
line."""

_FETCH = (
    r"(?:<urlopen error |HTTPS?ConnectionPool\(host='(?P<name>[^']+)'|httpx\.Connect(?:Error|Timeout): )"
    r"(?:(?!ProxyError)[^\n])*?"
)
"""The beginning of an error message of a library that downloads something; only the reason after it says what is wrong."""
_NO_REASON = r"\A(?![\s\S]*(?:CERTIFICATE_VERIFY_FAILED|Connection refused|timed out))[\s\S]*"

SCRIPT_SYMPTOMS: tuple[Symptom, ...] = (
    Symptom(
        word="module-missing",
        title="A module is missing on the node",
        signs=(
            r"ModuleNotFoundError: No module named '(?P<name>[^']+)'",
            r"(?:ModuleNotFoundError|ImportError): [^\n]*`(?P<name>[\w.-]+)`[^\n]*not installed",
            r"ImportError: [^\n]*(?:not found in your environment: (?P<name>[\w.-]+)|pip install (?P<package>[\w.-]+))",
        ),
        why="The script imports {name}, and {node} has no such module: a package that is not installed there, or a file of "
        "yours that was not uploaded.",
        next="--with PATH uploads a file or folder of your own; a package is installed for the node's Python: "
        "{python} -m pip install (pip's name of it may differ)",
    ),
    Symptom(
        word="not-in-package",
        title="The script belongs to a package, and was not started as a part of it",
        signs=(r"ImportError: attempted relative import (?:with no known parent package|beyond top-level package)",),
        why="It imports from its own package (from . import ...), which Python knows only if the script is started by its name "
        "as a module: python -m package.train.",
        next="in the folder that holds the package: gpucourse run --module PACKAGE.SCRIPT, without .py",
    ),
    Symptom(
        word="shadowed-module",
        title="A file is named like a library",
        signs=(
            r"partially initialized module '(?P<name>\w+)'",
            r"cannot initialize type \"[^\"]+\": an object with that name is already",
        ),
        why="A file beside the script has the name of a library, so that `import` finds the file instead.",
        next="rename your file: no torch.py, cuda.py, random.py or logging.py beside a script",
    ),
    Symptom(
        word="file-missing",
        title="A file is missing on the node",
        signs=(
            r"(?m)^(?<!err_filename\)\n)[^\n]*FileNotFoundError: \[Errno 2\] No such file or directory: '(?P<name>[^']*)'",
            r"(?m)^\S+: can't open file '(?P<name>[^']*)': \[Errno 2\]",
        ),
        why="The script opens {name}, which is not on {node}. Only the script and what you name is uploaded.",
        next="upload it: --with PATH (a file or a folder) puts it beside the script on every node",
    ),
    Symptom(
        word="command-missing",
        title="A program that the script starts is missing on {node}",
        signs=(  # the last frame is in subprocess: the missing file is a program, not a file that the script opens
            r"raise child_exception_type\(errno_num, err_msg, err_filename\)\n"
            r"[^\n]*FileNotFoundError: \[Errno 2\] No such file or directory: '(?P<name>[^']*)'",
        ),
        why="The script starts {name} as a process of its own, and {node} has no such program, or not on its PATH. A whole "
        "command line in one string is looked for as one program; a missing working folder (cwd=) gives the same message.",
        next="gpucourse ssh {module} -- type -a {name}; install it there, or name it with its whole path; a command line is a "
        "list of words: subprocess.run(['ls', '-l'])",
    ),
    Symptom(
        word="wrong-arguments",
        title="torchrun does not take these options",
        signs=(r"(?m)^usage: run\.py \[-h\] \[--nnodes [\s\S]*?^run\.py: error: (?P<what>[^\n]+)",),
        why="torchrun ended at its own command line: {what}.",
        next="correct what comes after --torchrun; gpucourse ssh {module} -- {python} -m torch.distributed.run --help",
    ),
    Symptom(
        word="wrong-arguments",
        title="The script does not take these arguments",
        signs=(
            rf"(?m)^(?:\[rank\d+\]: ?)?(?!{_OTHER_PROGRAMS})\S+: error: (?P<what>[^\n]+)",
            r"(?m)^[\w.-]+ [^\n:]*: error: (?P<what>(?:argument |unrecognized arguments|the following arguments|one of the "
            r"arguments|ambiguous option)[^\n]*)",
            r'accelerate/commands/launch\.py", line \d+, in [^\x00]{0,600}\n(?P<what>ValueError: [^\n]+)',
            r"(?m)^Error: (?P<what>(?:No such option|Invalid value|Missing (?:option|argument)|Got unexpected)[^\n]*)",
        ),
        why="The script ended at its command line: {what}.",
        next="parameters of an exercise are given by --set NAME=VALUE, and gpucourse show lists them; arguments of a script of "
        "your own come after --: gpucourse run --script FILE -- ARGS",
    ),
    Symptom(
        word="wrong-arguments",
        title="srun does not take this option",
        signs=(r"(?m)^(?:srun|sbatch): (?P<what>(?:unrecognized|invalid) option[^\n]*)",),
        why="srun ended at its command line: {what}. The option is of another version of Slurm, or of a plugin that this "
        "cluster does not have, as --container-image is of pyxis.",
        next="take the option out of the batch file; gpucourse ssh {module} -- srun --help lists the options that exist",
    ),
    Symptom(
        word="server-refuses",
        title="A server refuses the connection",
        signs=(_FETCH + r"Connection refused[^\n]*",),
        why="{node} reached the machine, and nothing listens at that port: a server that the script starts itself and that is "
        "not ready yet or has ended, another port, or an address that means another machine (localhost is each node itself).",
        next="see whether it listens: gpucourse ssh {module} -- ss -ltn; wait until it answers before the first request",
    ),
    Symptom(
        word="server-not-trusted",
        title="The certificate of a server cannot be verified",
        signs=(_FETCH + r"CERTIFICATE_VERIFY_FAILED[^\n]*",),
        why="{node} reached the server and does not know who signed its certificate: its Python's own are old or "
        "missing, a proxy on the way presents one of its own, or the clock of {node} is wrong.",
        next="{python} -m pip install --upgrade certifi; behind such a proxy --env SSL_CERT_FILE=FILE with its certificates; "
        "date on {node}",
    ),
    Symptom(
        word="server-silent",
        title="A server did not answer in time",
        signs=(_FETCH + r"(?:timed out|\[Errno (?:60|110)\]|ConnectTimeoutError)[^\n]*",),
        why="Nothing came back to {node}: a firewall drops what goes out, as on many clusters, or the server is slow or down.",
        next="gpucourse ssh {module} -- curl -sSI ADDRESS; where the node has no way out, fetch it before and send the folder "
        "along (--with PATH)",
    ),
    Symptom(
        word="no-internet",
        title="The name of a server cannot be looked up",
        signs=(_FETCH + r"(?:\[Errno (?:-2|-5|8)\]|Name or service not known|No address associated|nodename nor)[^\n]*",),
        why="No name server that {node} asks knows {name}: the node gets no connection out, as on many clusters, or the name "
        "is misspelt.",
        next="gpucourse ssh {module} -- getent hosts NAME; where the node has no way out, fetch it before and send the folder "
        "along (--with PATH)",
    ),
    Symptom(
        word="no-internet",
        title="The node does not reach the internet",
        signs=(
            _NO_REASON + r"couldn't connect to '(?P<name>https?://[^']+)'",
            _NO_REASON + r"LocalEntryNotFoundError[^\n]*",
            r"OfflineModeIsEnabled[^\n]*",
            r"HTTPS?ConnectionPool\(host='(?P<name>[^']+)'[^\n]*ProxyError[^\n]*",
            r"<urlopen error Tunnel connection failed[^\n]*",
            _FETCH + r"(?:\[Errno (?:-3|51|65|101|113)\]|Temporary failure in name resolution|Network is unreachable"
            r"|No route to host)[^\n]*",
        ),
        why="The script fetches a model or data set from the internet, and {node} gets no connection out: many clusters let "
        "only their login node out, or want a proxy.",
        next="fetch it once where there is a connection, send the folder along (--with PATH) and give the script its path; "
        "HF_HOME and TORCH_HOME say where Hugging Face and torch look",
    ),
    Symptom(
        word="no-keyboard",
        title="The script waits for a line that nobody types",
        signs=(r"EOFError: EOF when reading a line",),
        why="It calls input(), and a rank on {node} has no keyboard: its standard input is empty.",
        next="give the value as an argument of the script: gpucourse run --script FILE -- ARGS; or as a variable: "
        "--env NAME=VALUE",
    ),
    Symptom(
        word="variable-missing",
        title="The environment variable {name} is not set",
        signs=(
            r"environment variable (?P<name>\w+) expected, but not set",
            r'File "[^"\n]*\bos(?:\.py)?>?", line \d+, in __getitem__\n(?:[^\n]*\n)?[^\n]*KeyError: \'(?P<name>\w+)\'',
        ),
        why="The script reads this variable, and on {node} it is not set. Of launchers, torchrun sets RANK, LOCAL_RANK, "
        "WORLD_SIZE, MASTER_ADDR and MASTER_PORT; srun sets SLURM_PROCID, SLURM_NTASKS and SLURM_LOCALID alone, and only "
        "inside a job.",
        next="for torchrun's: gpucourse run --script FILE --launcher torchrun; for another: --env {name}=VALUE, or in a batch "
        "file export {name}=VALUE before srun",
    ),
    Symptom(
        word="checkpoint-mismatch",
        title="The checkpoint does not fit the model",
        signs=(r"Error\(s\) in loading state_dict for [^\n]*", r"size mismatch for \S+: copying a param"),
        why="The names or shapes of the stored parameters are not those of the model that the script built: other arguments, "
        "another version of the code, or names with `module.` before them, which DDP adds.",
        next="build the model with the arguments it was stored with; store ddp.module.state_dict(), without the prefix",
    ),
    Symptom(
        word="worker-lost",
        title="A worker of the DataLoader was lost",
        signs=(r"DataLoader worker \(pid(?:\(s\))? [\d, ]+\) (?:is killed by signal: (?!Bus)|exited unexpectedly)[^\n]*",),
        general=True,
        why="A process that loads data was ended from outside: by somebody, or by the kernel, because memory ran out. "
        "Every worker holds its own copy of the data set.",
        next="dmesg | grep -i 'out of memory' on {node}; fewer num_workers; with num_workers=0 an error of the data set itself "
        "shows",
    ),
    Symptom(
        word="open-files",
        title="Too many open files",
        signs=(r"Too many open files",),
        why="The process may not open more files (ulimit -n). Workers of a DataLoader hand over each tensor as an open file.",
        next="ulimit -n 65536 before the start; or torch.multiprocessing.set_sharing_strategy('file_system'); fewer workers",
    ),
    Symptom(
        word="library-mismatch",
        title="Two libraries do not fit together",
        signs=(
            r"operator (?P<what>\w+::\w+) does not exist",
            r"undefined symbol: \S+",
            r"compiled using NumPy 1\.x cannot be run in",
        ),
        why="A library was built for another version of the one it loads, usually of torch: extensions fit one version only.",
        next="install both together, in the versions that belong together: {python} -m pip install torch torchvision",
    ),
    Symptom(
        word="wrong-config",
        title="The folder of configurations is missing on the node",
        signs=(
            r"Primary config directory not found\.(?:\n[^\n]*directory '(?P<name>[^'\n]*)')?",
            r"Primary config module '(?P<name>[^'\n]*)' not found",
        ),
        why="The script looks for its configurations in {name}, which is not on {node}. Only the script and what you name is "
        "uploaded.",
        next="--with FOLDER uploads the folder of configurations, and puts it beside the script on every node",
    ),
    Symptom(
        word="wrong-config",
        title="The configuration does not fit",
        signs=(
            r"Could not override '[^']*'[^\n]*",
            r"(?:In '[^']+': )?Could not find '[^']+'",
            r"Error merging override [^\n]*",
            r"Missing mandatory value: [^\n]*",
            r"Cannot find primary config '[^']+'",
            r"The passed configuration file `[^`]+` does not exist",
        ),
        why="The script ended while it put its configuration together: a key or group that is not there, or a value of another "
        "kind.",
        next="--cfg job shows what hydra puts together, HYDRA_FULL_ERROR=1 the whole error; +key=value adds a key; a folder of "
        "configurations is uploaded by --with PATH",
    ),
)
