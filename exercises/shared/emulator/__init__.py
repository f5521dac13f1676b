"""A CUDA device on a CPU, for learning: a .cu file is compiled by g++ and run thread by thread, and every access is checked.

    program = build([Path("harness.cu"), Path("my_kernels.cu")], folder=Path("build"), defines={"T": 16})
    result = program.run("1000", order=1)
    result.kernels["block_sum"].global_load.sectors_per_request, result.kernels["block_sum"].first_fault()

What it counts: requests of warps with their sectors of 32 bytes, lanes, bytes and bank conflicts. What it finds: accesses out
of bounds, after cudaFree, through host pointers; races in shared and global memory; barriers that some threads never reach;
reads of shared memory that nobody wrote; results that change with the order of threads (`order` 0 to 3).

What it is not. It counts the accesses that g++ makes: nvcc may keep a number in a register that g++ loads again, or the other
way round, so the number of requests may differ; sectors per request follow from the addresses. Caches, latency, occupancy and
speed are not modelled. There are no streams, events, cooperative groups, textures, `__device__` variables, clocks or
cudaMallocPitch. Atomic functions are checked and counted, and are no requests. Of wmma, bytes are counted and requests are
not: which lane loads what is not documented. Linux with g++ only.
"""

from emulator.building import CompileError, build, find_compiler
from emulator.building import UnsupportedMachine as Unsupported
from emulator.kernels import Counts, Kernel, Request
from emulator.program import Endless, Program, Result, TooMuchOutput

__all__ = [
    "CompileError",
    "Counts",
    "Endless",
    "Kernel",
    "Program",
    "Request",
    "Result",
    "TooMuchOutput",
    "Unsupported",
    "build",
    "find_compiler",
]
