"""Judge my_warps.cu of 5.1: transpose and clip_sum, by the emulator's findings about their warps."""

from __future__ import annotations

from typing import Any

import kernel_judge

from gpucourse.judge import Part, Way

FEW_SECTORS, MAX_LANES = 4.0, 31.0

WAYS = {
    "out-of-bounds": Way(
        "{where}. If that is beyond the matrix: the last tile of a row or column may extend there, so check both the row and "
        "the column when you read, and again when you write, where rows and columns are swapped",
        ("if (y < columns && x < rows) out", "out"),
        seen="{where}: which element can a thread past the end read?",
    ),
    "barrier": Way(
        "{diverged}. A thread whose place is outside the matrix has nothing to read, but it may have something to write: "
        "let it reach the barrier",
        (
            "  if (y < rows && x < columns) tile[threadIdx.y][threadIdx.x] = in[y * columns + x];",
            "  if (y >= rows || x >= columns) return;\n  tile[threadIdx.y][threadIdx.x] = in[y * columns + x];",
        ),
        seen=kernel_judge.BARRIER,
    ),
    "unwritten": Way(
        "{unwritten}: either the condition for reading it into the tile is too strict, or its index differs from that "
        "of the write",
        ("if (y < rows && x < columns) tile", "if (y < rows && x < columns && x < rows) tile"),
    ),
    "race": Way(
        "{race}. One thread reads a number of the tile that another one wrote: put __syncthreads() between the two",
        ("  __syncthreads();\n", ""),
    ),
    "race-of-blocks": Way(
        "{race}. The warps of all blocks add to the same sum: atomicAdd reads, adds and writes in one step",
        ("  if (threadIdx.x % 32 == 0) atomicAdd(sum, value);", "  if (threadIdx.x % 32 == 0) *sum += value;"),
        seen=kernel_judge.RACE_OF_BLOCKS,
    ),
    "blocks-not-swapped": Way(
        "{says}. Inside a tile rows and columns change places, but the tile itself is written where it was read: with more "
        "than one tile, blockIdx.x and blockIdx.y have to change places, too",
        (
            "  x = blockIdx.y * 32 + threadIdx.x;\n  y = blockIdx.x * 32 + threadIdx.y;\n",
            "  x = blockIdx.x * 32 + threadIdx.x;\n  y = blockIdx.y * 32 + threadIdx.y;\n",
        ),
        seen="{says}",
    ),
    "strided-stores": Way(
        "a warp of transpose writes to {sectors:.0f} sectors per request, but 4 would hold its 32 numbers: its lanes write "
        "down a column. Let the lanes read along a row of in, put the tile into shared memory, and write along a row of out",
        (
            "  x = blockIdx.y * 32 + threadIdx.x;\n  y = blockIdx.x * 32 + threadIdx.y;\n"
            "  if (y < columns && x < rows) out[y * rows + x] = tile[threadIdx.x][threadIdx.y];",
            "  if (y < rows && x < columns) out[x * rows + y] = tile[threadIdx.y][threadIdx.x];",
        ),
        seen="a warp of transpose writes to {sectors:.3g} sectors per request, but 4 would hold its 32 numbers: do its lanes "
        "write along a row of out?",
    ),
    "strided-loads": Way(
        "a warp of transpose reads from {sectors:.0f} sectors per request, but 4 would hold its 32 numbers: now it writes "
        "along rows, but reads down a column. A tile in shared memory lets it do both along rows",
        (
            "  if (y < rows && x < columns) tile[threadIdx.y][threadIdx.x] = in[y * columns + x];",
            "  int r = blockIdx.y * 32 + threadIdx.x, c = blockIdx.x * 32 + threadIdx.y;\n"
            "  if (r < rows && c < columns) tile[threadIdx.x][threadIdx.y] = in[r * columns + c];",
        ),
        seen="a warp of transpose reads from {sectors:.3g} sectors per request, but 4 would hold its 32 numbers: do its lanes "
        "read along a row of in?",
    ),
    "bank-conflicts": Way(
        "a request to the tile of transpose takes {turns:.3g} turns instead of 1: numbers of its column share a bank, and a "
        "bank serves one per turn. In which bank does each row of the tile begin?",
        ("tile[32][33]", "tile[32][32]"),
    ),
    "split-warps": Way(
        "in clip_sum, only {lanes:.0f} of a warp's 32 lanes take part in a request: the other lanes take the other branch "
        "afterwards. Let whole warps, or whole blocks, take the same branch",
        (
            "  const int i = blockIdx.x / 2 * blockDim.x + threadIdx.x;\n  float value = 0.0f;\n  if (blockIdx.x % 2) {",
            "  const int i = (blockIdx.x * blockDim.x + threadIdx.x) / 2;\n  float value = 0.0f;\n  if (threadIdx.x & 1) {",
        ),
        seen="in clip_sum, only {lanes:.3g} of a warp's 32 lanes take part in a request: which lanes take another branch, "
        "or have nothing to read?",
    ),
    "read-twice": Way(
        "clip_sum reads {bytes:,} bytes, but the two channels have {needed:,}: no warp splits now, but every thread "
        "reads both channels and uses one. Let one thread read each sample",
        (
            "  if (blockIdx.x % 2) {  // whole blocks go one way\n"
            "    if (i < n) value = fmaxf(-limit, fminf(left[i], limit));\n"
            "  } else {\n"
            "    if (i < n) value = fmaxf(0.0f, right[i]);\n"
            "  }",
            "  const float l = i < n ? left[i] : 0.0f, r = i < n ? right[i] : 0.0f;\n"
            "  value = blockIdx.x % 2 ? fmaxf(-limit, fminf(l, limit)) : fmaxf(0.0f, r);",
        ),
        seen="clip_sum reads {bytes:,} bytes, but the two channels have {needed:,}: which numbers are read more "
        "than once, or not used?",
    ),
    "every-lane-adds": Way(
        "clip_sum makes {atomics:,} atomic additions with only {warps} warps. Additions to one place are done one after the "
        "other: add up the lanes of a warp with warp_sum, and let one of them add the warp's sum",
        ("  value = warp_sum(value);\n  if (threadIdx.x % 32 == 0) atomicAdd", "  atomicAdd"),
    ),
    "fixed-block": Way(kernel_judge.FIXED_BLOCK, ("blockIdx.x / 2 * blockDim.x", "blockIdx.x / 2 * 256")),
    "renamed": Way(kernel_judge.RENAMED, ("void clip_sum(", "void clipped_sum(")),
}


def judge(part: Part) -> None:
    """Judge both kernels at five sizes and in four orders of their threads, then the memory requests of their warps."""
    kernel_judge.judge_kernels(part, {"transpose": _look_at_transpose, "clip_sum": _look_at_clip})


def _look_at_transpose(part: Part, row: dict[str, Any]) -> None:
    if row["wrong_sizes"]:
        return  # its values are judged next
    if (sectors := row["store_sectors_per_request"]) > FEW_SECTORS:
        raise part.wrong("strided-stores", output=sectors, sectors=sectors)
    if (sectors := row["load_sectors_per_request"]) > FEW_SECTORS:
        raise part.wrong("strided-loads", output=sectors, sectors=sectors)
    if conflicts := row["bank_conflicts_per_request"]:
        raise part.wrong("bank-conflicts", turns=1 + conflicts)


def _look_at_clip(part: Part, row: dict[str, Any]) -> None:
    if row["wrong_sizes"]:
        return
    if (lanes := row["lanes_per_request"]) < MAX_LANES:
        raise part.wrong("split-warps", output=lanes, lanes=lanes)
    if row["bytes"] > row["bytes_needed"]:
        raise part.wrong("read-twice", output=row["bytes"], bytes=row["bytes"], needed=row["bytes_needed"])
    if row["atomics"] > (warps := 2 * kernel_judge.COUNTED // 32):
        raise part.wrong("every-lane-adds", atomics=row["atomics"], warps=warps)
