"""The symptoms that appear only on nodes with GPUs, or that should have GPUs: NCCL, CUDA, drivers. `source` as in
`symptoms`."""

from __future__ import annotations

from gpucourse.coach.symptom import Symptom

GPU_SYMPTOMS: tuple[Symptom, ...] = (
    Symptom(
        word="no-gpu",
        title="NCCL without a GPU",
        signs=(r"Distributed package doesn't have NCCL built in", r"ProcessGroupNCCL is only supported with GPUs"),
        why="The script wants NCCL, which only moves bytes between GPUs, and {node} has no GPU that torch can use. Between "
        "CPUs, use gloo.",
        next="take the backend from the environment: os.environ.get('GPUCOURSE_BACKEND', 'nccl'); or --backend=gloo where "
        "the script has it",
        followed=r"backend[= ]gloo\b",
        instead='gloo was asked for, and the script still uses NCCL: look for init_process_group and "nccl" in it',
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
        why="The script wants a GPU, and {node} has none that torch can use.",
        next="let the script take what is there: device = torch.accelerator.current_accelerator() or torch.device('cpu'), "
        "tensors by .to(device), DDP without device_ids; --device=cpu or --no-accel where the script has it",
        followed=r"(?:device|accelerator)[= ]cpu\b|--(?:no-accel|no-cuda|cpu|use_cpu)\b",
        instead="the CPU was asked for, and this line still wants CUDA: put it behind torch.cuda.is_available()",
    ),
    Symptom(
        word="gpu-shared",
        title="More processes than GPUs",
        signs=(
            r"invalid device ordinal",
            r"Duplicate GPU detected",
            r"is process \d+ of its node, with \d+ GPUs",
        ),
        why="A rank has no GPU of its own: choose it by LOCAL_RANK, not by RANK, and start no more processes on a node than "
        "it has GPUs.",
        next="--nproc-per-node as many as nvidia-smi -L lists on each node",
        source="documented",
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
        next="gpucourse doctor; nvidia-smi shows the driver's CUDA version, torch.cuda.get_arch_list() what torch was built "
        "for",
        source="documented",
    ),
    Symptom(
        word="nccl-timeout",
        title="A collective on the GPUs did not end in time",
        signs=(r"Watchdog caught collective operation timeout[^\n]*", r"ran for \d+ milliseconds before timing out"),
        why="NCCL's watchdog ended the run: one rank did not reach a collective that the others wait in. The rank that "
        "reports it is not the one that is missing.",
        next="gpucourse logs {run} --fold shows who said less; TORCH_NCCL_TRACE_BUFFER_SIZE=2000 writes down the last calls",
        weight="follows",
        source="documented",
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
        why="NCCL could not talk to another GPU. Over several nodes the usual reason is the interface it chose by itself, or a "
        "port that the security group does not let through between the nodes.",
        next="--env NCCL_DEBUG=INFO says what it chose; set NCCL_SOCKET_IFNAME to the interface of the private address; last, "
        "NCCL_P2P_DISABLE=1",
        followed=r"NCCL_DEBUG=INFO\b",
        instead="its lines `NCCL INFO NET/` say which interface it chose: gpucourse logs {run}; set NCCL_SOCKET_IFNAME to the "
        "one of the private address; last, NCCL_P2P_DISABLE=1",
        source="documented",
    ),
    Symptom(
        word="cuda-error",
        title="A GPU reported an error",
        signs=(r"CUDA error: (?P<what>[^\n]+)", r"device-side assert triggered", r"uncorrectable ECC error", r"NVRM: Xid"),
        why="Kernels run later than the line that starts them, so the traceback may point at an innocent line.",
        next="--env CUDA_LAUNCH_BLOCKING=1 moves the traceback to the right line; dmesg | grep Xid tells of the hardware",
        general=True,
        source="documented",
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
        why="The other end of a connection went away. Where another rank ended first, that is the one to look at; where all "
        "ranks say this, the network does not carry it: a wrong interface, or a port that the security group closes.",
        next="the rank that ended first: gpucourse logs {run} --fold; run again with --env NCCL_DEBUG=INFO if there is none",
        weight="follows",
        source="documented",
    ),
)
