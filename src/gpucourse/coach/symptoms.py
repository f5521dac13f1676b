"""The symptoms that are recognised in the text of logs, as data: one entry per symptom, with its signs as regular expressions.

The signs of NCCL, CUDA and drivers come from their documentation, because they appear only on GPUs. The other signs were seen
in logs of torch and gloo. Each sign is searched for in the whole end of a log. `why` and `next` may contain the named groups of
the signs, and {rank}, {node}, {python}, {exercise}, {module}, {run} and {world}.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal

Weight = Literal["cause", "follows"]


@dataclass(frozen=True, kw_only=True)
class Symptom:
    """One symptom.

    `weight` is `cause` if the symptom alone explains a failure, or `follows` if ranks print it because of another failure. A
    `general` symptom counts only in a log without a more specific cause. `followed` is a pattern of command lines that already
    follow the advice in `next`; for such a run, `instead` is the next step.
    """

    word: str
    title: str
    signs: tuple[str, ...]
    why: str
    next: str
    followed: str = ""
    instead: str = ""
    weight: Weight = "cause"
    general: bool = False

    def read_words(self, text: str) -> dict[str, str]:
        """Return the text that each named group matches. All signs are searched, because the last sign that matches may not
        contain every group."""
        return {
            name: value
            for sign in self.signs
            for match in re.finditer(sign, text)
            for name, value in match.groupdict().items()
            if value
        }

    def search(self, text: str) -> re.Match[str] | None:
        """Return the last match of any sign in the text, because the end of a log counts most."""
        last: re.Match[str] | None = None
        for sign in self.signs:
            for match in re.finditer(sign, text):
                last = match if last is None or match.start() > last.start() else last
        return last


_LINE_OF_SHELL = r"(?m)^(?:\d+: )?(?P<file>[^\s:]+): line (?P<line>\d+): "
_NOT_OF_SCRIPT = r"(?![\s\S]*Traceback(?![\s\S]*ModuleNotFoundError))"  # a script that started and failed has another symptom
_NO_TRACEBACK = r"(?![\s\S]*Traceback)"  # the shell continues after these errors

_OTHER_PROGRAMS = (
    r"srun|slurmstepd|sbatch|salloc|scancel|squeue|sinfo|sacct"
    r"|cc1|collect2|ld:|ld\.|gcc|g\+\+|c\+\+|clang|nvcc|\S*(?:\(\d+\)|:\d+)(?::\d+)*:"
)
"""Programs that are not scripts but write `NAME: error: ` as argparse does: Slurm's commands, and compilers, which name a
line."""

_FETCH = (
    r"(?:<urlopen error |HTTPS?ConnectionPool\(host='(?P<name>[^']+)'|httpx\.Connect(?:Error|Timeout): )"
    r"(?:(?!ProxyError)[^\n])*?"
)
"""The beginning of an error message from a library that downloads something; only the reason after it says what is wrong."""
_NO_REASON = r"\A(?![\s\S]*(?:CERTIFICATE_VERIFY_FAILED|Connection refused|timed out))[\s\S]*"

SYMPTOMS: tuple[Symptom, ...] = (
    Symptom(
        word="port-busy",
        title="The meeting port is taken",
        signs=(
            r"failed to listen on any local network address\. port: (?P<port>\d+)",
            r"EADDRINUSE",
            r"[Aa]ddress already in use",
        ),
        why="Rank 0 opens the port where all ranks meet. Another process already listens there: an old run or another program. "
        "Rank 0 fails immediately; the others keep connecting to the wrong process.",
        next="gpucourse runs shows what is still running; end the run that uses the port (gpucourse cancel), then run again",
        followed=r"(?:--master-port|MASTER_PORT)=(?!{port}\b)",
        instead="the script sets port {port} itself: read MASTER_ADDR and MASTER_PORT from the environment, as torchrun sets "
        "them",
    ),
    Symptom(
        word="wrong-interface",
        title="The network interface does not exist, or does not reach the other nodes",
        signs=(
            r"Unable to find address for: (?P<interface>\S+)",
            r"Bootstrap : no socket interface found",
            r"No interface found in the same subnet",
            r"[Nn]o (?:usable )?(?:socket )?interface (?:matching|found|named)",
        ),
        why="Collectives use the interface that GLOO_SOCKET_IFNAME or NCCL_SOCKET_IFNAME names. The name is wrong on {node}: "
        "an interface may be called eth0 on one machine and ens5 on another, and lo never leaves the machine.",
        next="gpucourse ssh {module} -- ip -brief address shows the names; let gpucourse run set the variable, or set it to "
        "one of them",
    ),
    Symptom(
        word="name-unknown",
        title="The meeting point's name cannot be looked up",
        signs=(
            r"addresses of \((?P<host>[^,()]+), \d+\) cannot be retrieved[\s\S]*?timed out after \d+ms while trying to connect "
            r"to \((?P=host),",
            r"socket\.gaierror",
            r"Temporary failure in name resolution",
        ),
        general=True,
        why="MASTER_ADDR is a name that this node cannot turn into an address, so it cannot find rank 0.",
        next="use the head's private address as --master-addr: gpucourse run {exercise} --dry-run prints it",
    ),
    Symptom(
        word="out-of-memory",
        title="Out of memory",
        signs=(
            r"OutOfMemoryError[^\n]*",
            r"(?:CUDA|HIP|MPS backend) out of memory",
            r"CUDA error: out of memory",
            r"Cuda failure (?:\d+ )?'out of memory'",
            r"(?:CUBLAS|CUDNN)_STATUS_ALLOC_FAILED",
            r"DefaultCPUAllocator: can't allocate memory[^\n]*",
            r"MemoryError\b[^\n]*",
            r"std::bad_alloc",
        ),
        why="Rank {rank} asked for more memory than is free. DDP needs more than the same model alone: it keeps a second "
        "copy of the gradients, in its buckets, and every rank on a machine has its own copy of everything.",
        next="gpucourse run {exercise} with a smaller batch_size (--set batch_size=16); or gradient_as_bucket_view=True, "
        "mixed precision, gradient checkpointing",
    ),
    Symptom(
        word="out-of-memory",
        title="Slurm ended it: out of memory",
        signs=(
            r"Detected \d+ oom[-_]kill event[^\n]*",
            r"killed by the cgroup out-of-memory handler",
            r"(?m)^srun: error: [^\n]*: Out Of Memory",
            r"exceeded memory limit \(\d+ > \d+\), being killed",
        ),
        why="The job used more of the node's memory than it had asked for. Slurm ended it, or the kernel ended the largest "
        "process: the script, or a worker of its DataLoader.",
        next="ask for more (--slurm mem=32G; in a batch file: #SBATCH --mem=32G), or use less: fewer num_workers, a smaller "
        "batch_size",
    ),
    Symptom(
        word="shared-memory",
        title="Shared memory is full",
        signs=(
            r"out of shared memory",
            r"unable to (?:open|mmap|write to) (?:shared memory|\d+ bytes from file </torch_)",
            r"Bus error",
        ),
        why="Workers of a DataLoader, and NCCL between GPUs of one machine, pass data through /dev/shm. It is full.",
        next="use fewer num_workers, or start the container with more (--shm-size); df -h /dev/shm shows how much there is",
    ),
    Symptom(
        word="rank-mismatch",
        title="The ranks do not fit the world size",
        signs=(
            r"rank < size\. (?P<told>\d+) vs (?P<size>\d+)",
            r"[Ii]nvalid rank (?P<told>\d+), rank should be",
            r"rank (?P<told>\d+) (?:is )?(?:out of range|already (?:exists|joined))",
        ),
        why="A process has a rank that is outside its world size. Over all nodes, ranks are numbered from 0 to "
        "WORLD_SIZE - 1, each number once. --node-rank typed twice, or RANK set by hand, is the usual reason.",
        next="echo $RANK of $WORLD_SIZE on each node; gpucourse run {exercise} --dry-run prints the correct commands",
    ),
    Symptom(
        word="collective-mismatch",
        title="Ranks call collectives that do not match",
        signs=(
            r"op\.preamble\.length <= op\.nbytes[^\n]*",
            r"Detected mismatch between collectives on ranks[^\n]*",
            r"terminate called after throwing an instance of 'gloo::EnforceNotMet'",
            r"[Cc]ollectives? (?:sequence )?(?:mismatch|differ)",
        ),
        why="In a collective, every rank must pass a tensor of the same size and type, in the same order of calls. Here one "
        "rank passed a different one, perhaps because of a branch on rank, a smaller last batch or another dtype.",
        next="--env TORCH_DISTRIBUTED_DEBUG=DETAIL names the two calls; compare the ranks: gpucourse logs {run} --fold",
    ),
    Symptom(
        word="different-models",
        title="The ranks built different models",
        signs=(r"DDP expects same model across all ranks[^\n]*", r"appears not to match (?:strides|sizes) of the same param"),
        why="DDP averages parameter by parameter, so every rank must build the same model in the same order. Here they did "
        "not, perhaps because of a branch on rank in the model, or of arguments that differ from node to node.",
        next="compare print(sum(p.numel() for p in model.parameters())) of all ranks; build the model without using the rank",
    ),
    Symptom(
        word="unused-parameters",
        title="Some parameters took no part in the loss",
        signs=(
            r"Expected to have finished reduction in the prior iteration",
            r"did not receive grad for rank \d+",
            r"parameters that were not used in producing (?:the )?loss",
        ),
        why="DDP waits for the gradient of every parameter before it completes a bucket. A layer that forward does not use has "
        "no gradient, so the next step finds the last bucket incomplete.",
        next="remove the layer, or use DistributedDataParallel(model, find_unused_parameters=True)",
    ),
    # Nodes that have GPUs, or should have them: NCCL, CUDA, drivers.
    Symptom(
        word="no-gpu",
        title="NCCL without a GPU",
        signs=(r"Distributed package doesn't have NCCL built in", r"ProcessGroupNCCL is only supported with GPUs"),
        why="The script uses NCCL, which only moves bytes between GPUs, and {node} has no GPU that torch can use. Between "
        "CPUs, use gloo.",
        next="read the backend from the environment: os.environ.get('GPUCOURSE_BACKEND', 'nccl'); or --backend=gloo if the "
        "script has this option",
        followed=r"backend[= ]gloo\b",
        instead='gloo was requested, but the script still uses NCCL: look for init_process_group and "nccl" in it',
    ),
    Symptom(
        word="no-gpu",
        title="CUDA without a GPU",
        signs=(
            r"Torch not compiled with CUDA enabled",
            r"has no attribute '_cuda_\w+'",
            r"No CUDA GPUs are available",
            r"Found no NVIDIA driver on your system",
            r"Tried to instantiate dummy base class \w+",
            r"[Cc]annot access accelerator device when none is available",
            r"device type at start of device string: None",
            r"get_default_backend_for_device[^\x00]{0,400}got \(NoneType\)",
            r"current_accelerator\(\)(?:\.\w+|\))[^\x00]{0,300}'NoneType' object has no attribute '\w+'",
            r"Attempting to deserialize object on a CUDA device",
            r"assert torch\.(?:cuda|accelerator)\.is_available\(\)[^\x00]{0,200}AssertionError",
            r"% torch\.(?:cuda|accelerator)\.device_count\(\)[^\x00]{0,200}ZeroDivisionError",
            r"requires (?:a GPU \(not '\w+'\)|CUDA support)",
            r"No supported gpu backend found",
            r"can not run on your system since the accelerator is not available",
            r"device_ids and output_device arguments only work with[^\n]*device\(type='cpu'\)",
        ),
        why="The script needs a GPU, but {node} has none that torch can use.",
        next="let the script use the device that exists: device = torch.accelerator.current_accelerator() or "
        "torch.device('cpu'), "
        "tensors by .to(device), DDP without device_ids; --device=cpu or --no-accel if the script has this option",
        followed=r"(?:device|accelerator)[= ]cpu\b|--(?:no-accel|no-cuda|cpu|use_cpu)\b",
        instead="the CPU was requested, but this line still needs CUDA: put it behind torch.cuda.is_available()",
    ),
    Symptom(
        word="gpu-shared",
        title="More processes than GPUs",
        signs=(
            r"invalid device ordinal",
            r"Duplicate GPU detected",
            r"is process \d+ of its node, with \d+ GPUs",
        ),
        why="A rank has no GPU of its own: choose the GPU by LOCAL_RANK, not by RANK, and start no more processes on a node "
        "than it has GPUs.",
        next="set --nproc-per-node to the number of GPUs that nvidia-smi -L lists on each node",
    ),
    Symptom(
        word="driver",
        title="The driver does not match torch",
        signs=(
            r"NVIDIA driver on your system is too old",
            r"CUDA driver version is insufficient",
            r"no kernel image is available for execution",
        ),
        why="This build of torch needs a newer driver, or was not built for this GPU.",
        next="gpucourse doctor; nvidia-smi shows the driver's CUDA version, and torch.cuda.get_arch_list() the GPUs that torch "
        "was built for",
    ),
    Symptom(
        word="nccl-timeout",
        title="A collective on the GPUs did not end in time",
        signs=(r"Watchdog caught collective operation timeout[^\n]*", r"ran for \d+ milliseconds before timing out"),
        why="NCCL's watchdog ended the run: one rank did not reach a collective that the others wait in. The rank that "
        "reports it is not the one that is missing.",
        next="gpucourse logs {run} --fold shows which rank printed less; TORCH_NCCL_TRACE_BUFFER_SIZE=2000 records the last "
        "calls",
        weight="follows",
    ),
    Symptom(
        word="nccl-error",
        title="NCCL failed",
        signs=(
            r"ncclSystemError[^\n]*",
            r"ncclUnhandledCudaError[^\n]*",
            r"ncclInvalidUsage[^\n]*",
            r"ncclInternalError(?![\s\S]{0,200}(?:closed by remote peer|reset by peer|recv failed))[^\n]*",
            r"NCCL WARN (?![^\n]*(?:reset by peer|Broken pipe|recv failed))[^\n]*(?:failed|error|No route|timed out)[^\n]*",
            r"NCCL [Ee]rror(?![^\n]*(?:remote process exited|internal error))[^\n]*",
        ),
        general=True,
        why="NCCL could not communicate with another GPU. Across several nodes, the usual reason is the interface that it "
        "chose, or a port that the security group blocks between the nodes.",
        next="--env NCCL_DEBUG=INFO says what it chose; set NCCL_SOCKET_IFNAME to the interface of the private address; as a "
        "last resort, NCCL_P2P_DISABLE=1",
        followed=r"NCCL_DEBUG=INFO\b",
        instead="its lines `NCCL INFO NET/` say which interface it chose: gpucourse logs {run}; set NCCL_SOCKET_IFNAME to the "
        "interface of the private address; as a last resort, NCCL_P2P_DISABLE=1",
    ),
    Symptom(
        word="cuda-error",
        title="A GPU reported an error",
        signs=(r"CUDA error: (?P<what>[^\n]+)", r"device-side assert triggered", r"uncorrectable ECC error", r"NVRM: Xid"),
        why="Kernels run later than the line that starts them, so the traceback may point at the wrong line.",
        next="--env CUDA_LAUNCH_BLOCKING=1 moves the traceback to the right line; dmesg | grep Xid shows faults of the "
        "hardware",
        general=True,
    ),
    Symptom(
        word="nccl-error",
        title="NCCL lost the connection to another GPU",
        signs=(
            r"ncclRemoteError[^\n]*",
            r"ncclInternalError[^\n]*",
            r"remote process exited or there was a network error",
            r"NCCL WARN [^\n]*(?:reset by peer|Broken pipe|recv failed|closed by remote peer)[^\n]*",
        ),
        why="The other end of a connection was lost. If another rank ended first, look at that one. If all ranks report "
        "this, the network is at fault: a wrong interface, or a port that the security group blocks.",
        next="gpucourse logs {run} --fold shows the rank that ended first; if there is none, run again with --env "
        "NCCL_DEBUG=INFO",
        weight="follows",
    ),
    # The shell: a batch file that it cannot read, commands that are not on the node.
    Symptom(
        word="shell-syntax",
        title="The shell cannot read the script, near line {line}",
        signs=(
            _LINE_OF_SHELL + r"(?P<what>syntax error[^\n]*)",
            _LINE_OF_SHELL + r"(?P<what>unexpected EOF[^\n]*)",
            _LINE_OF_SHELL + r"(?P<what>[^\n]*unterminated[^\n]*)",
            _LINE_OF_SHELL + r"(?P<what>[^\n]*bad substitution)" + _NO_TRACEBACK,
            _LINE_OF_SHELL + r"warning: (?P<what>here-document [^\n]*)" + _NO_TRACEBACK,
        ),
        why="The shell reports for line {line}: {what}. It notices an unclosed quote, bracket, `if` or `do` only at the end of "
        "the file or at the next one of its kind, so the mistake is on that line or above it.",
        next="bash -n FILE reads the file without running it, and shellcheck FILE names the quote that is open",
    ),
    Symptom(
        word="no-modules",
        title="There is no `module` command on {node}",
        signs=(
            _LINE_OF_SHELL + r"module: command not found" + _NOT_OF_SCRIPT,
            r"(?m)^(?P<file>[^\s:]+): (?P<line>\d+): module: not found" + _NOT_OF_SCRIPT,
        ),
        why="Line {line} loads software with `module` (Environment Modules, or Lmod), as on the cluster that the script was "
        "written for. Here software is installed without modules, or the shell of a job does not read the file that defines "
        "`module`.",
        next="leave the `module` lines out and name the Python that has the packages; on a cluster with modules put "
        "`source /etc/profile` above them, or begin the file with #!/bin/bash -l",
    ),
    Symptom(
        word="command-missing",
        title="A command is missing on {node}",
        signs=(_LINE_OF_SHELL + r"(?P<name>[^\s:]+): command not found" + _NOT_OF_SCRIPT,),
        why="Line {line} of the script starts {name}, and {node} has no such program, or it is not on the PATH of a job.",
        next="gpucourse ssh {module} -- type -a {name}; install it there, load its module (on a Slurm cluster: the key setup), "
        "or use its full path",
        general=True,
    ),
    Symptom(
        word="command-missing",
        title="A path in the script is missing on {node}",
        signs=(_LINE_OF_SHELL + r"(?P<name>/\S+): No such file or directory" + _NOT_OF_SCRIPT,),
        why="Line {line} of the script starts, reads or writes {name}: {node} has no such program or file, or lacks the folder "
        "that it belongs in.",
        next="gpucourse ssh {module} -- ls -ld {name}; correct the path, or make the folder on the node",
        general=True,
    ),
    # A script and its surroundings: arguments, files, modules, variables, workers.
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
        "{python} -m pip install (its name in pip may differ)",
    ),
    Symptom(
        word="not-in-package",
        title="The script belongs to a package, and was not started as a part of it",
        signs=(r"ImportError: attempted relative import (?:with no known parent package|beyond top-level package)",),
        why="It imports from its own package (from . import ...), which works only if the script is started as a module: "
        "python -m package.train.",
        next="in the folder that contains the package: gpucourse run --module PACKAGE.SCRIPT, without .py",
    ),
    Symptom(
        word="shadowed-module",
        title="A file has the name of a library",
        signs=(
            r"partially initialized module '(?P<name>\w+)'",
            r"cannot initialize type \"[^\"]+\": an object with that name is already",
        ),
        why="A file next to the script has the name of a library, so `import` finds that file instead.",
        next="rename your file: no torch.py, cuda.py, random.py or logging.py next to a script",
    ),
    Symptom(
        word="file-missing",
        title="A file is missing on the node",
        signs=(
            r"(?m)^(?<!err_filename\)\n)[^\n]*FileNotFoundError: \[Errno 2\] No such file or directory: '(?P<name>[^']*)'",
            r"(?m)^\S+: can't open file '(?P<name>[^']*)': \[Errno 2\]",
        ),
        why="The script opens {name}, which is not on {node}. Only the script and what you name are uploaded.",
        next="upload it: --with PATH (a file or a folder) puts it next to the script on every node",
    ),
    Symptom(
        word="command-missing",
        title="A program that the script starts is missing on {node}",
        signs=(  # the last frame is in subprocess: the missing file is a program, not a file that the script opens
            r"raise child_exception_type\(errno_num, err_msg, err_filename\)\n"
            r"[^\n]*FileNotFoundError: \[Errno 2\] No such file or directory: '(?P<name>[^']*)'",
        ),
        why="The script starts {name} as a separate process, and {node} has no such program on its PATH. A whole "
        "command line in one string is looked for as one program; a missing working folder (cwd=) gives the same message.",
        next="gpucourse ssh {module} -- type -a {name}; install it there, or use its full path; a command line is a "
        "list of words: subprocess.run(['ls', '-l'])",
    ),
    Symptom(
        word="wrong-arguments",
        title="torchrun does not accept these options",
        signs=(r"(?m)^usage: run\.py \[-h\] \[--nnodes [\s\S]*?^run\.py: error: (?P<what>[^\n]+)",),
        why="torchrun rejected its own command line: {what}.",
        next="correct what comes after --torchrun; gpucourse ssh {module} -- {python} -m torch.distributed.run --help",
    ),
    Symptom(
        word="wrong-arguments",
        title="The script does not accept these arguments",
        signs=(
            rf"(?m)^(?:\[rank\d+\]: ?)?(?!{_OTHER_PROGRAMS})\S+: error: (?P<what>[^\n]+)",
            r"(?m)^[\w.-]+ [^\n:]*: error: (?P<what>(?:argument |unrecognized arguments|the following arguments|one of the "
            r"arguments|ambiguous option)[^\n]*)",
            r'accelerate/commands/launch\.py", line \d+, in [^\x00]{0,600}\n(?P<what>ValueError: [^\n]+)',
            r"(?m)^Error: (?P<what>(?:No such option|Invalid value|Missing (?:option|argument)|Got unexpected)[^\n]*)",
        ),
        why="The script rejected its command line: {what}.",
        next="parameters of an exercise are set with --set NAME=VALUE, and gpucourse show lists them; arguments of a script of "
        "your own come after --: gpucourse run --script FILE -- ARGS",
    ),
    Symptom(
        word="wrong-arguments",
        title="srun does not accept this option",
        signs=(r"(?m)^(?:srun|sbatch): (?P<what>(?:unrecognized|invalid) option[^\n]*)",),
        why="srun rejected its command line: {what}. The option belongs to another version of Slurm, or to a plugin that this "
        "cluster does not have, as --container-image belongs to pyxis.",
        next="remove the option from the batch file; gpucourse ssh {module} -- srun --help lists the options that exist",
    ),
    Symptom(
        word="server-refuses",
        title="A server refuses the connection",
        signs=(_FETCH + r"Connection refused[^\n]*",),
        why="{node} reached the machine, but nothing listens on that port. The port or the address is wrong (localhost is each "
        "node itself), or a server that the script starts itself is not ready yet or has ended.",
        next="see whether it listens: gpucourse ssh {module} -- ss -ltn; wait until it answers before the first request",
    ),
    Symptom(
        word="server-not-trusted",
        title="The certificate of a server cannot be verified",
        signs=(_FETCH + r"CERTIFICATE_VERIFY_FAILED[^\n]*",),
        why="{node} reached the server but cannot verify who signed its certificate: the certificates of its Python are old "
        "or missing, a proxy on the way presents its own certificate, or the clock of {node} is wrong.",
        next="{python} -m pip install --upgrade certifi; behind such a proxy, --env SSL_CERT_FILE=FILE names the proxy's "
        "certificates; date shows the clock of {node}",
    ),
    Symptom(
        word="server-silent",
        title="A server did not answer in time",
        signs=(_FETCH + r"(?:timed out|\[Errno (?:60|110)\]|ConnectTimeoutError)[^\n]*",),
        why="Nothing came back to {node}: a firewall drops outgoing traffic, as on many clusters, or the server is slow or "
        "down.",
        next="gpucourse ssh {module} -- curl -sSI ADDRESS; if the node cannot reach the internet, download the files "
        "elsewhere and upload the folder with --with PATH",
    ),
    Symptom(
        word="no-internet",
        title="The name of a server cannot be looked up",
        signs=(_FETCH + r"(?:\[Errno (?:-2|-5|8)\]|Name or service not known|No address associated|nodename nor)[^\n]*",),
        why="{node} cannot find {name} with its name servers: the node cannot reach the internet, as on many clusters, or the "
        "name is misspelt.",
        next="gpucourse ssh {module} -- getent hosts NAME; if the node cannot reach the internet, download the files "
        "elsewhere and upload the folder with --with PATH",
    ),
    Symptom(
        word="no-internet",
        title="The node cannot reach the internet",
        signs=(
            _NO_REASON + r"couldn't connect to '(?P<name>https?://[^']+)'",
            _NO_REASON + r"LocalEntryNotFoundError[^\n]*",
            r"OfflineModeIsEnabled[^\n]*",
            r"HTTPS?ConnectionPool\(host='(?P<name>[^']+)'[^\n]*ProxyError[^\n]*",
            r"<urlopen error Tunnel connection failed[^\n]*",
            _FETCH + r"(?:\[Errno (?:-3|51|65|101|113)\]|Temporary failure in name resolution|Network is unreachable"
            r"|No route to host)[^\n]*",
        ),
        why="The script fetches a model or data set from the internet, and {node} cannot reach it: on many clusters only the "
        "login node can, or a proxy is needed.",
        next="download it once on a computer with a connection, upload the folder with --with PATH and give the script its "
        "path; HF_HOME and TORCH_HOME say where Hugging Face and torch look",
    ),
    Symptom(
        word="no-keyboard",
        title="The script waits for a line from a keyboard",
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
        why="The script reads this variable, which is not set on {node}. torchrun sets RANK, LOCAL_RANK, "
        "WORLD_SIZE, MASTER_ADDR and MASTER_PORT; srun sets only SLURM_PROCID, SLURM_NTASKS and SLURM_LOCALID, and only "
        "inside a job.",
        next="for torchrun's: gpucourse run --script FILE --launcher torchrun; for another: --env {name}=VALUE, or in a batch "
        "file export {name}=VALUE before srun",
    ),
    Symptom(
        word="checkpoint-mismatch",
        title="The checkpoint does not fit the model",
        signs=(r"Error\(s\) in loading state_dict for [^\n]*", r"size mismatch for \S+: copying a param"),
        why="The names or shapes of the stored parameters differ from those of the model that the script built. Its arguments "
        "or the version of the code differ, or the names have the prefix `module.`, which DDP adds.",
        next="build the model with the arguments that it was stored with; store ddp.module.state_dict(), without the prefix",
    ),
    Symptom(
        word="worker-lost",
        title="A worker of the DataLoader was lost",
        signs=(r"DataLoader worker \(pid(?:\(s\))? [\d, ]+\) (?:is killed by signal: (?!Bus)|exited unexpectedly)[^\n]*",),
        general=True,
        why="A process that loads data was ended from outside: by another process, or by the kernel because memory ran out. "
        "Every worker has its own copy of the data set.",
        next="dmesg | grep -i 'out of memory' on {node}; fewer num_workers; with num_workers=0 an error in the data set itself "
        "becomes visible",
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
        title="Two libraries are incompatible",
        signs=(
            r"operator (?P<what>\w+::\w+) does not exist",
            r"undefined symbol: \S+",
            r"compiled using NumPy 1\.x cannot be run in",
        ),
        why="A library was built for another version of a library that it loads, usually torch, and works only with that one.",
        next="install both together, in matching versions: {python} -m pip install torch torchvision",
    ),
    Symptom(
        word="wrong-config",
        title="The folder of configurations is missing on the node",
        signs=(
            r"Primary config directory not found\.(?:\n[^\n]*directory '(?P<name>[^'\n]*)')?",
            r"Primary config module '(?P<name>[^'\n]*)' not found",
        ),
        why="The script looks for its configurations in {name}, which is not on {node}. Only the script and what you name are "
        "uploaded.",
        next="--with FOLDER uploads the folder of configurations, and puts it next to the script on every node",
    ),
    Symptom(
        word="wrong-config",
        title="The configuration is not valid",
        signs=(
            r"Could not override '[^']*'[^\n]*",
            r"(?:In '[^']+': )?Could not find '[^']+'",
            r"Error merging override [^\n]*",
            r"Missing mandatory value: [^\n]*",
            r"Cannot find primary config '[^']+'",
            r"The passed configuration file `[^`]+` does not exist",
        ),
        why="The script ended while it built its configuration: a key or group does not exist, or a value has the wrong type.",
        next="--cfg job shows what hydra builds, and HYDRA_FULL_ERROR=1 the whole error; +key=value adds a key; a folder of "
        "configurations is uploaded with --with PATH",
    ),
    # The node, and its connections to the others.
    Symptom(
        word="disk-full",
        title="The node's disk is full",
        signs=(r"No space left on device", r"Disk quota exceeded"),
        why="A rank could not write its files.",
        next="gpucourse ssh {module} -- df -h; old runs on a node are in ~/.gpucourse/jobs",
    ),
    Symptom(
        word="clock-skew",
        title="The clocks of two machines differ",
        signs=(
            r"[Cc]lock skew",
            r"certificate is not yet valid",
            r"RequestTimeTooSkewed",
            r"Signature not yet current",
            r"(?:Rewound|Expired) credential",
        ),
        why="The checks of credentials and certificates, and the program `make`, compare times. They fail if clocks differ.",
        next="timedatectl shows the clock of each node; chronyc makestep sets the clock (simulated nodes share this "
        "computer's)",
    ),
    Symptom(
        word="wrong-interface",
        title="The ranks could not connect to each other",
        signs=(
            r"[Gg]loo connectFullMesh failed[^\n]*",
            r"connect \[?(?:127\.|::1)[^\n]*Connection refused",
            r"SO_ERROR: Connection refused, remote=\[127\.[^\n]*",
        ),
        why="All ranks found the meeting point and exchanged their addresses, but then could not connect. The others "
        "cannot reach an address of {node}: its name resolves to 127.0.0.1 or 127.0.1.1, or it has several interfaces and "
        "gloo chose one that is not on the nodes' network.",
        next="gpucourse ssh {module} -- ip -brief address; then set GLOO_SOCKET_IFNAME to the interface of the private "
        "address, as gpucourse run does",
        weight="follows",
    ),
    Symptom(
        word="meeting-point",
        title="The meeting point did not answer",
        signs=(
            r"connect\(\) timed out",
            r"client socket has (?:timed out after \d+m?s while trying|failed) to connect to "
            r"[^\n]*?\(?(?P<where>[\w.:\[\]-]+, ?\d+)\)?",
            r"RendezvousConnectionError",
            r"RendezvousTimeoutError",
            r"(?:TCPStore|c10d|torch/distributed/|[Gg]loo|[Rr]endezvous)[^\x00]*Connection refused",
        ),
        why="This rank tried to reach rank 0 at MASTER_ADDR and MASTER_PORT, and got no answer: rank 0 is not up yet or has "
        "ended, the address is wrong, or a firewall blocks the port.",
        next="look at rank 0 first: gpucourse logs {run} --rank 0; then nc -zv MASTER_ADDR MASTER_PORT from the other node",
        weight="follows",
    ),
    Symptom(
        word="collective-timeout",
        title="A rank did not reach the collective",
        signs=(
            r"Timed out waiting (?P<limit>\d+)ms for (?:recv|send) operation to complete",
            r"Rank \d+ failed to pass monitoredBarrier in \d+ ms",
            r"Application timeout caused pair closure",
            r"[Ss]ocket [Tt]imeout",
        ),
        why="The ranks that time out reached the collective and waited. Look at the rank that did not reach it: it "
        "hangs, or it calls something else.",
        next="compare the last lines: gpucourse logs {run} --fold",
        weight="follows",
    ),
    Symptom(
        word="peer-lost",
        title="Another rank was lost",
        signs=(
            r"Connection closed by peer",
            r"(?<!\[Errno 104\] )Connection reset by peer",
            r"(?<!\[Errno 32\] )Broken pipe",
            r"Connection was likely closed",
            r"NCCL communicator was aborted on rank",
        ),
        why="This rank is a victim: the connection to another rank broke while both were in a collective.",
        next="find the rank that ended first: gpucourse logs {run} --fold",
        weight="follows",
    ),
)
