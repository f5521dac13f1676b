"""Judge my_gemm.cu of 5.3: both kernels in the emulator, by values and accesses, each with two sets of template arguments."""

from __future__ import annotations

import array
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import emulator
import versions

from gpucourse.judge import Part, Way
from gpucourse.judge.verdict import Verdict

N, SMALL, TILE, LIMIT_S = 64, 32, 16, 8.0
HARNESS = Path(__file__).resolve().parents[1] / "gemm_harness.cu"
Matrix = list[list[float]]

WAYS = {
    "first-barrier": Way(
        "{kernel}: a thread multiplies numbers that another one has not fetched yet ({fault}). Between fetching and "
        "multiplying, all threads of the block must wait for each other: __syncthreads()",
        ("        __syncthreads();  // both tiles are complete\n", ""),
    ),
    "partly-fetched": Way(
        "{kernel}: a number that is multiplied is never fetched ({fault}). The threads of a block must together fill both "
        "tiles: if there are more numbers than threads, each fetches several",
        ("for (int i = threadIdx.x; i < K * M; i += threads) b[", "for (int i = threadIdx.x; i < threads; i += threads) b["),
    ),
    "second-barrier": Way(
        "{kernel}: a fast thread fetches the next tile while a slow one still reads this one ({fault}). After the "
        "multiplication all threads must wait once more. The values may be right in one order of the threads, and wrong in "
        "another",
        ("        __syncthreads();  // no thread reads them any more\n", ""),
    ),
    "not-all-meet": Way(
        "{kernel}: {fault}. A barrier inside a condition, or after a return, waits for threads that never come",
        ("__syncthreads();  // both tiles are complete", "if (threadIdx.y < T / 2) __syncthreads();"),
    ),
    "past-the-end": Way(
        "{kernel} uses memory outside its matrices: {fault}. How many tiles are in a row of n numbers, and which one is the "
        "last?",
        ("for (int first = 0; first < n; first += T) {", "for (int first = 0; first <= n; first += T) {"),
    ),
    "one-slab": Way(
        "{kernel} adds only the products of the first {slab} numbers of a row: the loop over the tiles has to reach n",
        ("for (int first = 0; first < n; first += T) {", "for (int first = 0; first < T; first += T) {"),
    ),
    "last-slab": Way(
        "{kernel} has only the products of the last {slab} numbers of a row: its sum starts again from 0 with "
        "each tile. Set it to 0 once, before the loop",
        (
            "        __syncthreads();  // no thread reads them any more\n",
            "        __syncthreads();\n        if (first + T < n) sum = 0.0f;\n",
        ),
    ),
    "turned": Way(
        "{kernel} computes the product with rows and columns exchanged. threadIdx.x belongs to the column of C, threadIdx.y to "
        "its row",
        ("C[row * n + column] = sum;", "C[column * n + row] = sum;"),
    ),
    "blocks-turned": Way(
        "{kernel} puts each block of C into the place of another: blockIdx.x counts along a row, and blockIdx.y down a column",
        (
            "C[(blockIdx.y * M + down + i) * n + blockIdx.x * M + across + j]",
            "C[(blockIdx.x * M + down + i) * n + blockIdx.y * M + across + j]",
        ),
    ),
    "partly-written": Way(
        "{kernel} leaves {missing:,} of {numbers:,} numbers of C unwritten. The threads of a block must together write every "
        "number of its part of C, with =: C does not begin with 0, so += adds to NaN",
        ("for (int j = 0; j < R; ++j) C[", "for (int j = 0; j < 1; ++j) C["),
    ),
    "not-shared": Way(
        "{kernel} is right, but its threads ask main memory for {given:,} bytes, although {right:,} are enough: each number "
        "that a block needs should be fetched once, by one thread, and read by the others from shared memory",
        ("sum += a[threadIdx.y][k] * b[k][threadIdx.x];", "sum += a[threadIdx.y][k] * B[(first + k) * n + column];"),
    ),
    "by-column": Way(
        "{kernel} is right, but each request of a warp touches {given:.1f} sectors of 32 bytes, although {right:.1f} are "
        "enough: its lanes fetch numbers of one column. Let threadIdx.x count along a row of A, and of B",
        (
            "a[threadIdx.y][threadIdx.x] = A[row * n + first + threadIdx.x];",
            "a[threadIdx.x][threadIdx.y] = A[(blockIdx.y * T + threadIdx.x) * n + first + threadIdx.y];",
        ),
    ),
    "bank-conflicts": Way(
        "{kernel} is right, but its reads of shared memory wait {given:,} times for a bank that another lane of the warp uses: "
        "the lanes read a column of a tile. Transpose the tile, or make its rows one number longer",
        (
            "        b[threadIdx.y][threadIdx.x] = B[(first + threadIdx.y) * n + column];\n"
            "        __syncthreads();  // both tiles are complete\n"
            "        for (int k = 0; k < T; ++k) sum += a[threadIdx.y][k] * b[k][threadIdx.x];",
            "        b[threadIdx.x][threadIdx.y] = B[(first + threadIdx.y) * n + column];\n"
            "        __syncthreads();  // both tiles are complete\n"
            "        for (int k = 0; k < T; ++k) sum += a[threadIdx.y][k] * b[threadIdx.x][k];",
        ),
    ),
    "fixed-size": Way(
        "{kernel} is right with {usual}, but not with {other} ({why}): use the template argument instead of a constant",
        ("first += K) {", "first += 8) {"),
    ),
    "fixed-n": Way(
        "{kernel} is right with n = {usual}, but not with n = {other}: use n instead of a constant",
        (
            "b[threadIdx.y][threadIdx.x] = B[(first + threadIdx.y) * n + column];",
            "b[threadIdx.y][threadIdx.x] = B[(first + threadIdx.y) * 64 + column];",
        ),
    ),
}


@dataclass(frozen=True)
class Launch:
    """One launch of a learner's kernel: its names in the harness and in the emulator's report, and its template
    arguments."""

    name: str
    launched: str
    arguments: str
    slab: int  # numbers of a row that it fetches at a time
    side: int  # of the part of C that a block computes

    @property
    def kernel(self) -> str:
        return self.name.partition("-")[0]


LAUNCHES = (
    Launch("tiled", f"tiled<{TILE}>", "T = 16", 16, 16),
    Launch("tiled-half", f"tiled<{TILE // 2}>", "T = 8", 8, 8),
    Launch("registers", f"registers<{2 * TILE}, 8, 4>", "M, K, R = 32, 8, 4", 8, 32),
    Launch("registers-half", f"registers<{2 * TILE}, 4, 2>", "M, K, R = 32, 4, 2", 4, 32),
)


@dataclass
class Observation:
    """The outcome of one launch: the harness's lines for this product and for a smaller one, the emulator's counts, and the
    product."""

    line: Mapping[str, Any]
    small: Mapping[str, Any]
    counts: Any
    product: Matrix


def judge(part: Part) -> None:
    """Judge the values and accesses of both kernels, first at the usual size, then at another size."""
    with tempfile.TemporaryDirectory() as place:
        observations = run_launches(part, Path(place))
    written_kernels = {
        launch.kernel: touches_memory(observations[launch.name].counts) for launch in LAUNCHES if launch.name in observations
    }
    if not any(written_kernels.values()):
        raise Verdict("open", sentence="tiled and registers are not written yet: they read no number from memory")
    for usual, second in (LAUNCHES[:2], LAUNCHES[2:]):
        if written_kernels[usual.kernel]:
            check_launch(part, usual, observations[usual.name])
            check_other_size(part, usual, second, observations[second.name])
            if not is_right(observations[usual.name].small):
                raise part.wrong("fixed-n", f"n = {SMALL}", kernel=usual.kernel, usual=N, other=SMALL)
            part.note(describe(usual, observations[usual.name]))
    missing = [kernel for kernel, is_written in written_kernels.items() if not is_written]
    if missing:
        raise Verdict("open", sentence=f"{missing[0]} is not written yet; the other kernel is right")


def run_launches(part: Part, place: Path) -> dict[str, Observation]:
    """Build and run all launches, and return what was observed of each.

    Raises Verdict if the file does not compile or a kernel does not end.
    """
    source = place / "my_gemm.cu"
    source.write_bytes(part.file.read_bytes())
    try:
        program = emulator.build([HARNESS, source], folder=place / "build", defines={"TILE": TILE, "VARIANTS": 1}, every=True)
        result = program.run(str(N), "integers", str(place), limit_s=LIMIT_S, every=True)
        small = program.run(str(SMALL), "integers", limit_s=LIMIT_S, every=True)
    except emulator.CompileError as error:
        raise explain_compiler(error) from None
    except emulator.Unsupported as error:
        raise Verdict("error", "unsupported", str(error)) from None
    except emulator.Endless as error:
        raise Verdict("failed", "endless", f"{error}. Which loop never reaches n?", f"n = {N}") from None
    except emulator.TooMuchOutput as error:
        raise Verdict("failed", "too-much-output", f"{error}: remove the printf from the kernel") from None
    lines, small_lines = (read_lines(run) for run in (result, small))
    return {
        launch.name: Observation(
            lines[launch.name],
            small_lines[launch.name],
            result.kernels.get(launch.launched, emulator.Kernel(launch.launched)),  # an empty kernel has no such name
            read_product(place, launch),
        )
        for launch in LAUNCHES
    }


def explain_compiler(error: emulator.CompileError) -> Verdict:
    """Return the compiler's first error, with the learner's line."""
    if error.file == "my_gemm.cu":
        return Verdict("failed", "not-compiled", f"{error.file}:{error.line}: {error.message}")
    says = (
        "it does not fit what calls it: keep template <int T> tiled(A, B, C, n), template <int M, int K, int R> "
        f"registers(A, B, C, n), and their types ({error.message})"
    )
    return Verdict("failed", "not-compiled", says)


def read_lines(result: emulator.Result) -> dict[str, Any]:
    """Return the harness's line of each launch. Raises Verdict if the program ended early."""
    lines, failed = versions.read_lines(result.output, names=[launch.name for launch in LAUNCHES])
    if failed or result.code or len(lines) != len(LAUNCHES):
        reason = result.crash or failed or result.output.strip()[-300:]
        raise Verdict("failed", "ended", f"a kernel ended the program: {reason}")
    return lines


def read_product(place: Path, launch: Launch) -> Matrix:
    """Return the matrix C that a launch wrote."""
    numbers = array.array("f")
    numbers.frombytes((place / f"{launch.name}.bin").read_bytes())
    return [list(numbers[row * N : row * N + N]) for row in range(N)]


def touches_memory(counts: Any) -> bool:
    """Return whether a kernel used any memory. The one provided does not."""
    kinds = (counts.global_load, counts.global_store, counts.shared_load, counts.shared_store)
    return any(kind.requests for kind in kinds)


def check_other_size(part: Part, usual: Launch, second: Launch, observation: Observation) -> None:
    """Raise Verdict if a kernel is right only with the usual template arguments."""
    try:
        check_faults(part, second, observation)
        check_values(part, second, observation)
    except Verdict as verdict:
        reason = observation.counts.first_fault() or f"{count_wrong(observation)} numbers of C are wrong"
        raise part.wrong(
            "fixed-size", verdict.case, kernel=usual.kernel, usual=usual.arguments, other=second.arguments, why=reason
        ) from None


def check_launch(part: Part, launch: Launch, observation: Observation) -> None:
    """Judge the faults, the values and the memory requests of a launch. Raises Verdict."""
    check_faults(part, launch, observation)
    check_values(part, launch, observation)
    check_accesses(part, launch, observation)


def check_faults(part: Part, launch: Launch, observation: Observation) -> None:
    """Judge races, reads of unwritten memory, accesses out of bounds, and barriers that some threads miss. Raises Verdict."""
    counts = observation.counts
    if counts.out_of_bounds:
        raise part.wrong("past-the-end", launch.arguments, kernel=launch.kernel, fault=counts.where)
    if counts.barrier_divergence:
        raise part.wrong("not-all-meet", launch.arguments, kernel=launch.kernel, fault=counts.diverged)
    if counts.unwritten_reads and not counts.races:  # no thread writes it later, so no barrier is missing
        raise part.wrong("partly-fetched", launch.arguments, kernel=launch.kernel, fault=counts.unwritten)
    if counts.unwritten_reads:
        raise part.wrong("first-barrier", launch.arguments, kernel=launch.kernel, fault=counts.unwritten)
    if counts.races and "shared" in counts.race and "reads" in counts.race:  # two writes: no barrier would help
        raise part.wrong("second-barrier", launch.arguments, kernel=launch.kernel, fault=counts.race)
    if fault := counts.first_fault():
        raise Verdict("failed", "fault", f"{launch.kernel}: {fault}", launch.arguments)


def is_right(line: Mapping[str, Any]) -> bool:
    """Return whether the harness found every number of C right."""
    return bool(line["error"] <= line["allowed"] and not line["unwritten"])


def count_wrong(observation: Observation) -> int:
    """Return how many numbers of C are wrong."""
    right = multiply(range(N))
    return sum(observation.product[row][column] != right[row][column] for row in range(N) for column in range(N))


def check_values(part: Part, launch: Launch, observation: Observation) -> None:
    """Compare the product with the right one, and with the results of the mistakes. Raises Verdict."""
    line, product = observation.line, observation.product
    if line["unwritten"]:
        raise part.wrong("partly-written", launch.arguments, kernel=launch.kernel, missing=line["unwritten"], numbers=N * N)
    if is_right(line):
        return
    right = multiply(range(N))
    for way, make in name_products(launch, right).items():
        if product == make():
            raise part.wrong(way, launch.arguments, kernel=launch.kernel, slab=launch.slab)
    row, column = next((r, c) for r in range(N) for c in range(N) if product[r][c] != right[r][c])
    says = (
        f"{launch.kernel}: {count_wrong(observation):,} of {N * N:,} numbers of C are wrong; in row {row} and column {column} "
        f"it has {product[row][column]:g}; {right[row][column]:g} is right. Integers are multiplied, so nothing is "
        "rounded. Does each sum begin with 0? A variable that is not initialised begins with whatever was in memory"
    )
    raise Verdict("failed", "values", says, launch.arguments)


def name_products(launch: Launch, right: Matrix) -> dict[str, Callable[[], Matrix]]:
    """Return C as each mistake computes it. Mistakes that do not change the values are left out."""
    side = launch.side

    def swap_blocks() -> Matrix:
        return [[right[c // side * side + r % side][r // side * side + c % side] for c in range(N)] for r in range(N)]

    return {
        "one-slab": lambda: multiply(range(launch.slab)),
        "last-slab": lambda: multiply(range(N - launch.slab, N)),
        "turned": lambda: [list(column) for column in zip(*right, strict=True)],
        "blocks-turned": swap_blocks,
    }


def multiply(ks: range) -> Matrix:
    """Return the product of the harness's two matrices, adding only the products at these places of a row of A."""
    a = [[make_number(row * N + k, 1) for k in ks] for row in range(N)]
    b = [[make_number(k * N + column, 77777) for k in ks] for column in range(N)]
    return [[float(sum(map(int.__mul__, row_of_a, right))) for right in b] for row_of_a in a]


def make_number(i: int, seed: int) -> int:
    """Return number i of a matrix, computed as in gemm_harness.cu."""
    x = (i + seed) * 2654435761 & 0xFFFFFFFF
    x = (x ^ x >> 15) * 2246822519 & 0xFFFFFFFF
    return (x ^ x >> 13) % 7 - 3


def check_accesses(part: Part, launch: Launch, observation: Observation) -> None:
    """Judge the bytes, sectors and bank conflicts of a kernel whose values are right. Raises Verdict."""
    load, shared = observation.counts.global_load, observation.counts.shared_load
    right_bytes = 8 * N**3 // launch.side
    if load.bytes > right_bytes:
        raise part.wrong("not-shared", launch.arguments, kernel=launch.kernel, given=load.bytes, right=right_bytes)
    ideal = load.sectors_ideal / load.requests
    if load.sectors_per_request > 1.5 * ideal:
        sectors = load.sectors_per_request
        raise part.wrong("by-column", launch.arguments, kernel=launch.kernel, given=sectors, right=ideal)
    if launch.name == "tiled" and shared.bank_conflicts:
        raise part.wrong("bank-conflicts", launch.arguments, kernel=launch.kernel, given=shared.bank_conflicts)


def describe(launch: Launch, observation: Observation) -> str:
    """Describe the figures of a right kernel in one line."""
    load = observation.counts.global_load
    text = f"{launch.kernel}: right; {load.bytes:,} bytes asked for, {versions.flop_per_byte(N, load.bytes):.1f} FLOP per byte"
    conflicts = observation.counts.shared_store.bank_conflicts
    return text + (f"; {conflicts:,} bank conflicts when it writes its slabs" if conflicts else "")
