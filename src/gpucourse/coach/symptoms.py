"""The symptoms that are recognised by log text, as data: one entry per symptom, with signs as regular expressions.

`source` says where a sign comes from: `seen` in a log that this course's tests reproduce with real torch and gloo, `documented`
by the library that prints it (NCCL and CUDA need GPUs). A sign is searched in the whole end of a log; `why` and `next` may
contain its named groups, and {rank}, {node}, {python}, {exercise}, {module}, {run} and {world}.
"""

from __future__ import annotations

import re

from gpucourse.coach.gpu_symptoms import GPU_SYMPTOMS
from gpucourse.coach.script_symptoms import SCRIPT_SYMPTOMS
from gpucourse.coach.shell_symptoms import SHELL_SYMPTOMS
from gpucourse.coach.symptom import Symptom

SYMPTOMS: tuple[Symptom, ...] = (
    Symptom(
        word="port-busy",
        title="The meeting port is taken",
        signs=(
            r"failed to listen on any local network address\. port: (?P<port>\d+)",
            r"EADDRINUSE",
            r"[Aa]ddress already in use",
        ),
        why="Rank 0 opens the port where all ranks meet. Another process listens there already: an old run or another program. "
        "Rank 0 fails at once; the others keep connecting to the wrong process.",
        next="gpucourse runs shows what still runs, gpucourse cancel RUN ends it; then run again: it takes another port",
        followed=r"(?:--master-port|MASTER_PORT)=(?!{port}\b)",
        instead="the script names port {port} itself: take MASTER_ADDR and MASTER_PORT from the environment, as torchrun sets "
        "them",
    ),
    Symptom(
        word="wrong-interface",
        title="The network interface does not exist, or does not lead to the others",
        signs=(
            r"Unable to find address for: (?P<interface>\S+)",
            r"Bootstrap : no socket interface found",
            r"No interface found in the same subnet",
            r"[Nn]o (?:usable )?(?:socket )?interface (?:matching|found|named)",
        ),
        why="Collectives use the interface that GLOO_SOCKET_IFNAME or NCCL_SOCKET_IFNAME names. The name is wrong on {node}: "
        "interfaces are eth0 here and ens5 there, and lo never leaves the machine.",
        next="gpucourse ssh {module} -- ip -brief address shows the names; leave the variable to gpucourse run, or set it "
        "right",
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
        why="MASTER_ADDR is a name that this node cannot turn into an address, so it looks for rank 0 nowhere.",
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
        why="Rank {rank} asked for more memory than is left. DDP needs more than the same model alone: it holds the gradients "
        "once more, in its buckets, and every rank on a machine has its own copy of everything.",
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
        ),
        why="The job used more of the node's memory than it had asked for, and the kernel ended the process that was largest: "
        "the script, or a worker of its DataLoader.",
        next="more in the batch file: #SBATCH --mem=32G; or less: fewer num_workers, a smaller batch_size",
        source="documented",
    ),
    Symptom(
        word="shared-memory",
        title="Shared memory is full",
        signs=(
            r"out of shared memory",
            r"unable to (?:open|mmap|write to) (?:shared memory|\d+ bytes from file </torch_)",
            r"Bus error",
        ),
        why="Workers of a DataLoader, and NCCL between GPUs of one machine, hand their data over in /dev/shm. It is full.",
        next="fewer num_workers; in a container more of it (--shm-size); df -h /dev/shm says how much there is",
        source="documented",
    ),
    Symptom(
        word="rank-mismatch",
        title="Ranks that do not fit together",
        signs=(
            r"rank < size\. (?P<told>\d+) vs (?P<size>\d+)",
            r"[Ii]nvalid rank (?P<told>\d+), rank should be",
            r"rank (?P<told>\d+) (?:is )?(?:out of range|already (?:exists|joined))",
        ),
        why="A process was given a rank that its world does not have: ranks count from 0 to WORLD_SIZE - 1, over all nodes, "
        "each once. --node-rank given twice, or RANK set by hand, is the usual reason.",
        next="echo $RANK of $WORLD_SIZE on each node; gpucourse run {exercise} --dry-run prints the lines as they must be",
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
        why="In a collective every rank must pass a tensor of the same size and type, in the same order of calls. Here one "
        "rank passed a different one: a branch on rank, a smaller last batch, another dtype.",
        next="--env TORCH_DISTRIBUTED_DEBUG=DETAIL names the two calls; compare the ranks: gpucourse logs {run} --fold",
    ),
    Symptom(
        word="different-models",
        title="The ranks built different models",
        signs=(r"DDP expects same model across all ranks[^\n]*", r"appears not to match (?:strides|sizes) of the same param"),
        why="DDP averages parameter by parameter, so every rank must build the same model in the same order. Here they did "
        "not: a branch on rank in the model, or arguments that differ from node to node.",
        next="print(sum(p.numel() for p in model.parameters())) on every rank, and build the model without looking at rank",
    ),
    Symptom(
        word="unused-parameters",
        title="Some parameters took no part in the loss",
        signs=(
            r"Expected to have finished reduction in the prior iteration",
            r"did not receive grad for rank \d+",
            r"parameters that were not used in producing (?:the )?loss",
        ),
        why="DDP waits for the gradient of every parameter before it ends a bucket. A layer that forward does not use has "
        "none, so the next step finds the last one unfinished.",
        next="take the layer out, or DistributedDataParallel(model, find_unused_parameters=True)",
    ),
    *GPU_SYMPTOMS,
    *SHELL_SYMPTOMS,
    *SCRIPT_SYMPTOMS,
    Symptom(
        word="disk-full",
        title="The node's disk is full",
        signs=(r"No space left on device", r"Disk quota exceeded"),
        why="A rank could not write any more.",
        next="gpucourse ssh {module} -- df -h; old runs on a node lie in ~/.gpucourse/jobs",
    ),
    Symptom(
        word="clock-skew",
        title="Clocks that differ",
        signs=(
            r"[Cc]lock skew",
            r"certificate is not yet valid",
            r"RequestTimeTooSkewed",
            r"Signature not yet current",
            r"(?:Rewound|Expired) credential",
        ),
        why="What is signed or ordered by time fails where the clocks of two machines differ: credentials, certificates, make.",
        next="timedatectl on every node; chronyc makestep sets the clock (simulated nodes share this computer's)",
        source="documented",
    ),
    Symptom(
        word="wrong-interface",
        title="The ranks could not connect to each other",
        signs=(
            r"[Gg]loo connectFullMesh failed[^\n]*",
            r"connect \[?(?:127\.|::1)[^\n]*Connection refused",
            r"SO_ERROR: Connection refused, remote=\[127\.[^\n]*",
        ),
        why="All ranks found the meeting point and told each other their addresses, and then could not connect. An address of "
        "{node} leads nowhere from the others: its name resolves to 127.0.0.1 or 127.0.1.1, or it has several interfaces and "
        "gloo chose one that is not on the nodes' network.",
        next="gpucourse ssh {module} -- ip -brief address; then GLOO_SOCKET_IFNAME with the interface of the private address "
        "(gpucourse run sets it)",
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
        why="This rank looked for rank 0 where MASTER_ADDR and MASTER_PORT say, and nobody answered: rank 0 is not up yet or "
        "gone, the address is another one, or a firewall closes the port.",
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
        why="This rank is a victim: the connection to another one broke while both were in a collective.",
        next="find the first that ended: gpucourse logs {run} --fold",
        weight="follows",
    ),
)

MISSING_KEY = re.compile(
    r"wait timeout after \d+ms, keys: \S*?/(?P<missing>\d+)\s*$"
    r"|(?:\d+/(?P<told>\d+) (?:clients|workers) joined|world_size=(?P<size>\d+), worker_count=\d+)",
    re.MULTILINE,
)
"""The rank that the store of the process group waited for in vain: gloo waits for the key of each rank in turn."""
