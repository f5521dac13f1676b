"""Judge my_first_kernels.cu of 5.0: twelve small kernels, each by itself, by the emulator's findings."""

from __future__ import annotations

import re
from typing import Any

import kernel_judge

from gpucourse.judge import Part, Way
from gpucourse.judge.verdict import Verdict

WITH_TILES = ("halo", "scan")  # kernels that share memory, so that their number of threads matters
EMBEDDING_THREADS = 32  # threads of a block of embedding
WAYS = {
    "block-number": Way(
        "{observed}. All threads of a block have the same blockIdx.x. What differs between them is threadIdx.x",
        ("int i = threadIdx.x;", "int i = blockIdx.x;"),
        seen="{observed}",
    ),
    "no-guard": Way(
        "{observed}. Only whole blocks are launched, so the last one has more threads than there are numbers left: if (i < n)",
        ("if (i < n) out[i] = in[i] + 10.0f;", "out[i] = in[i] + 10.0f;"),
        seen="{observed}",
    ),
    "one-guard": Way(
        "{observed}. The grid is too large in both directions: check the row as well as the column",
        (
            "if (r < rows && c < columns) out[r * columns + c] = in[r * columns + c] + 10.0f;",
            "if (c < columns) out[r * columns + c] = in[r * columns + c] + 10.0f;",
        ),
        seen="{observed}",
    ),
    "same-index": Way(
        "{observed}. The two threads differ only in threadIdx.y, and still compute the same row and column: which of your "
        "indices should depend on threadIdx.y?",
        (
            "  int r = blockIdx.y * blockDim.y + threadIdx.y, c = blockIdx.x * blockDim.x + threadIdx.x;\n"
            "  if (r < rows && c < columns) out[r * columns + c] = in[r * columns + c] + 10.0f;",
            "  int r = blockIdx.y * blockDim.y + threadIdx.x, c = blockIdx.x * blockDim.x + threadIdx.x;\n"
            "  if (r < rows && c < columns) out[r * columns + c] = in[r * columns + c] + 10.0f;",
        ),
        seen="{observed}",
    ),
    "row-length": Way(
        "{observed}. Two places of the matrix share a location: a row has `columns` numbers, so r rows come to r * columns",
        ("out[r * columns + c] = in[r * columns + c] + 10.0f;", "out[r * rows + c] = in[r * rows + c] + 10.0f;"),
        seen="{observed}",
    ),
    "indices-swapped": Way(
        "{observed}. a has a number for each row and b one for each column: which of them did you read by the other index?",
        ("a[r] + b[c]", "a[c] + b[r]"),
        seen="{observed}",
    ),
    "halo-barrier": Way(
        "{observed}. Each number of the tile is read by three threads, and one of them wrote it: wait at "
        "__syncthreads() in between",
        (
            "  __syncthreads();\n  if (i < n) out[i] = tile[t] + tile[t + 1] + tile[t + 2];",
            "  if (i < n) out[i] = tile[t] + tile[t + 1] + tile[t + 2];",
        ),
        seen="{observed}",
    ),
    "halo-missing": Way(
        "{observed}. The first and the last thread of the block need a neighbour that belongs to another block: "
        "they read it, too",
        (
            "  if (t == 0) tile[0] = i > 0 ? in[i - 1] : 0.0f;\n"
            "  if (t == blockDim.x - 1) tile[t + 2] = i + 1 < n ? in[i + 1] : 0.0f;\n",
            "",
        ),
        seen="{observed}",
    ),
    "halo-outside": Way(
        "{observed}. The first number of the array has no left neighbour, so the first block has to write a 0 there",
        ("tile[0] = i > 0 ? in[i - 1] : 0.0f;", "tile[0] = in[i - 1];"),
        seen="{observed}",
    ),
    "halo-from-memory": Way(
        "halo is right, but its threads ask memory for {numbers:,} numbers, although {needed:,} are enough: the block's "
        "numbers, and one on each side. Read them into tile once, and add up numbers of tile",
        (
            "out[i] = tile[t] + tile[t + 1] + tile[t + 2];",
            "out[i] = (i > 0 ? in[i - 1] : 0.0f) + tile[t + 1] + (i + 1 < n ? in[i + 1] : 0.0f);",
        ),
        seen="halo is right, but its threads ask memory for {numbers:,} numbers, although {needed:,} are enough: which are "
        "read twice?",
    ),
    "window-past-end": Way(
        "{observed}. The last window ends where the array ends: 4 i + k has to be below n as well",
        ("k < min(4 * i + 4, n)", "k < 4 * i + 4"),
        seen="{observed}",
    ),
    "begins-at-zero": Way(
        "{observed}. If all numbers of a window are negative, a 0 at the start is larger than each of them: start with in[4 i]",
        ("float largest = in[4 * i];", "float largest = fmaxf(0.0f, in[4 * i]);"),
        seen="{observed}",
    ),
    "other-axis": Way(
        "{observed}. This adds up a row. The numbers of column c are `columns` apart: in[r * columns + c]",
        (
            "for (int r = 0; r < rows; ++r) sum += in[r * columns + c];",
            "for (int r = 0; r < columns; ++r) sum += in[c * columns + r];",
        ),
        seen="{observed}",
    ),
    "scan-barrier": Way(
        "{observed}. In a step every number is read by another thread and then changed: a barrier between all reads and all "
        "writes keeps a thread from reading a sum of the same step",
        ("    __syncthreads();  // all have read\n", ""),
        seen="{observed}",
    ),
    "barrier-in-branch": Way(
        "{observed}. Threads below d have nothing to add, but must reach the barrier, too: on a GPU the others wait for ever, "
        "or go on before the numbers are there",
        (
            "    float before = t >= d ? part[t - d] : 0.0f;\n    __syncthreads();  // all have read\n    part[t] += before;\n",
            "    if (t >= d) {\n      float before = part[t - d];\n      __syncthreads();\n      part[t] += before;\n    }\n",
        ),
        seen="{observed}",
    ),
    "scan-too-short": Way(
        "{observed}. The steps end too early: after the step d a number has the sum of 2 d numbers, so that the last step "
        "has to be half of a block",
        ("d < blockDim.x; d *= 2", "d < blockDim.x / 2; d *= 2"),
        seen="{observed}",
    ),
    "count-not-atomic": Way(
        "{observed}. count[b] += 1 reads, adds and writes: if two threads read the same old count, one addition is lost. "
        "atomicAdd(&count[b], 1.0f) does all three in one step",
        ("atomicAdd(&count[bin[i]], 1.0f)", "count[bin[i]] += 1.0f"),
        seen="{observed}",
    ),
    "first-threads": Way(
        "{observed}. A thread copies only one number, and a row has more numbers than a block has threads: continue with "
        "k += blockDim.x until the row ends",
        ("for (int k = threadIdx.x; k < width; k += blockDim.x) out", "if (int k = threadIdx.x; k < width) out"),
        seen="{observed}",
    ),
    "place-for-token": Way(
        "{observed}. Row t of out is not row t of the table: its number is token[t]",
        ("table[token[t] * width + k]", "table[t * width + k]"),
        seen="{observed}",
    ),
    "old-row-length": Way(
        "{observed}. in and out have rows of different lengths, and you used the length of a row of in for a row of out",
        ("out[c * rows + r] = in[r * columns + c]", "out[c * columns + r] = in[r * columns + c]"),
        seen="{observed}",
    ),
    "sum-not-atomic": Way(
        "{observed}. The warps of all blocks add to one number: atomicAdd(sum, ...) reads, adds and writes in one step",
        ("if (threadIdx.x % 32 == 0) atomicAdd(sum, product)", "if (threadIdx.x % 32 == 0) *sum += product"),
        seen="{observed}",
    ),
    "lanes-returned": Way(
        "{observed}. A lane that has returned passes nothing to warp_sum, and what another lane then gets is not a number of "
        "yours: all 32 lanes have to call it, including those without numbers",
        ("  float product = i < n ? a[i] * b[i] : 0.0f;\n", "  if (i >= n) return;\n  float product = a[i] * b[i];\n"),
        seen="{observed}",
    ),
    "every-lane-adds": Way(
        "{observed}. After warp_sum only lane 0 has the sum of the warp; the other lanes have parts of it, which must not be "
        "added as well: if (threadIdx.x % 32 == 0)",
        ("if (threadIdx.x % 32 == 0) atomicAdd(sum, product)", "atomicAdd(sum, product)"),
        seen="{observed}",
    ),
    "atomic-of-each": Way(
        "dot is right, but makes {atomics:,} atomic additions with only {warps} warps, and additions to one place are done "
        "one after the other: add up the lanes with warp_sum, and let one of them add the sum",
        (
            "product = warp_sum(product);\n  if (threadIdx.x % 32 == 0) atomicAdd(sum, product)",
            "if (i < n) atomicAdd(sum, product)",
        ),
        seen="dot is right, but makes {atomics:,} atomic additions with only {warps} warps: which lane has to add?",
    ),
    "fixed-block": Way(kernel_judge.FIXED_BLOCK, ("t == blockDim.x - 1", "t == 255")),
    "renamed": Way(kernel_judge.RENAMED, ("void scan(", "void prefix_sum(")),
}
# The way that a symptom makes likely, for each kernel. The kind of fault, or `wrong`, `wrong late` and `nan` for wrong values,
# or `same x` for a race of threads that differ only in y.
SUSPECTS = {
    "map": {"races": "block-number"},
    "guard": {"out_of_bounds": "no-guard"},
    "two_dimensions": {"out_of_bounds": "one-guard", "same x": "same-index", "races": "row-length"},
    "broadcast": {"out_of_bounds": "indices-swapped"},
    "halo": {"out_of_bounds": "halo-outside", "races": "halo-barrier", "unwritten_reads": "halo-missing"},
    "pooling": {"out_of_bounds": "window-past-end", "wrong": "begins-at-zero"},
    "axis_sum": {"out_of_bounds": "other-axis"},
    "scan": {"races": "scan-barrier", "barrier_divergence": "barrier-in-branch", "wrong late": "scan-too-short"},
    "histogram": {"races": "count-not-atomic"},
    "embedding": {"wrong late": "first-threads", "wrong": "place-for-token"},
    "transpose": {"out_of_bounds": "old-row-length"},
    "dot": {"races": "sum-not-atomic", "barrier_divergence": "lanes-returned", "wrong": "every-lane-adds"},
}
SAME_X = re.compile(r"thread \((\d+),(\d+),0\) of block (\S+) writes .* thread \(\1,(?!\2,)\d+,0\) of block \3 writes")
FAULTS = {
    "out_of_bounds": "where",
    "barrier_divergence": "diverged",
    "races": "race",
    "unwritten_reads": "unwritten",
    "ended": "ended",
}


def judge(part: Part) -> None:
    """Judge each written kernel. The verdict says how many are right, and what is wrong with the first that is not."""
    import findings

    bodies = {kernel: findings.find_body(part.text, kernel) for kernel in findings.FIRST_KERNELS}
    for kernel, body in bodies.items():
        if body is None:
            other_names = kernel_judge.list_others(findings.list_kernels(part.text), set(bodies))
            raise part.wrong("renamed", file=part.file.name, kernel=kernel, others=other_names)
    open_kernels = [kernel for kernel, body in bodies.items() if findings.is_open(body or "")]
    written_kernels = [kernel for kernel in bodies if kernel not in open_kernels]
    program = kernel_judge.build(part) if written_kernels else None
    verdicts: list[Verdict] = []
    for kernel in written_kernels:
        try:
            _judge_kernel(part, program, kernel)
        except Verdict as verdict:
            verdicts.append(verdict)
    right_count = len(written_kernels) - len(verdicts)
    if verdicts:
        raise _add_count(
            verdicts[0], f"right: {right_count} of {len(bodies)} kernels; the first that is not: {verdicts[0].case}. "
        )
    if open_kernels:
        raise Verdict("open", sentence=f"right so far: {right_count} of {len(bodies)} kernels; the next one: {open_kernels[0]}")
    part.note(f"all {len(bodies)} kernels are right for 5 sizes, and in {len(findings.ORDERS)} more orders of their threads")


def _add_count(verdict: Verdict, beginning: str) -> Verdict:
    """Put `beginning` in front of the verdict's sentence, and return the verdict."""
    verdict.says = beginning + verdict.says
    if verdict.suspicion:
        verdict.suspicion["seen"] = beginning + verdict.suspicion["seen"]
    return verdict


def _judge_kernel(part: Part, program: Any, kernel: str) -> None:
    """Raise the verdict on a kernel that is wrong, or that asks for more than it needs."""
    import findings

    row = kernel_judge.examine(program, kernel, kernel_judge.BLOCK, findings.FIRST_COUNTED_SIZE)
    symptom, observed = _find_symptom(row)
    if symptom:
        output = [symptom, row.get(symptom), kernel_judge.remove_line(observed), row["wrong_rows"]]
        way = SUSPECTS[kernel].get(symptom)
        raise part.wrong(way, kernel, output=output, observed=observed) if way else Verdict("failed", "other", observed, kernel)
    blocks = -(-findings.FIRST_COUNTED_SIZE // kernel_judge.BLOCK)
    if kernel == "halo" and (numbers := row["load_bytes"] // 4) > (needed := findings.FIRST_COUNTED_SIZE + 2 * blocks):
        raise part.wrong("halo-from-memory", kernel, output=numbers, numbers=numbers, needed=needed)
    if kernel == "dot" and row["atomics"] > (warps := blocks * kernel_judge.BLOCK // 32):
        raise part.wrong("atomic-of-each", kernel, output=row["atomics"], atomics=row["atomics"], warps=warps)
    if kernel in WITH_TILES:
        try:
            kernel_judge.judge_other_blocks(part, program, kernel, findings.FIRST_COUNTED_SIZE)
        except Verdict as verdict:
            verdict.case = kernel
            raise


def _find_symptom(row: dict[str, Any]) -> tuple[str, str]:
    """Return the kind of the first fault of a kernel and its description, or two empty texts."""
    for symptom, description in FAULTS.items():  # causes before their consequences
        if row[symptom]:
            observed = row[description]
            if row["kernel"] not in WITH_TILES:  # without shared memory no barrier would help
                observed = observed.removesuffix(", and no barrier is between them")
            return "same x" if symptom == "races" and SAME_X.search(observed) else symptom, observed
    if any("nan" in str(value) for *_, value in row["wrong_rows"]):
        return "nan", row["wrong"]
    if row["wrong_sizes"]:
        return "wrong late" if row["wrong_rows"][0][2] >= EMBEDDING_THREADS else "wrong", row["wrong"]
    if row["orders_wrong"]:
        return "orders", f"wrong in {row['orders_wrong']} of the other orders of its threads"
    return "", ""
