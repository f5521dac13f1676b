"""Memory management: fill the device, read its memory in three ways, run out of it, free it again; then your own fix.

You will learn    allocated, reserved, and the driver's figure; what really frees memory; how to recover from running out
You will produce  the memory after each step, its curve, and your own fix, which works where the plain way fails, and goes on
                  when another program takes most of the memory
Run it            python memory_management.py --size 2000 --budget-mib 256      (a simulated device of 256 MiB)
                  python memory_management.py                                   (the whole GPU)
Your part         predict at which step memory runs out; then write sums_of_squares in my_fix.py, which must not run out
Reading           modules/01-basic-gpu/lesson-3-watching.md, "Three answers to one question" and "Out of memory"
"""

from __future__ import annotations

import argparse
import gc
import os
import shutil
import statistics
import sys
import traceback
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parent.parent / "shared"))  # in a checkout; on a node all files are in one folder

import bench
import my_fix
import torch
from bench import say
from device_memory import MIB, GpuMemory, SimulatedMemory

SEED, COLUMNS, PERIOD, CONTEXT_MIB, MAX_ERROR = 0, 1024, 97, 16, 1e-4
MAX_CALLS = 200  # of load, in the plot
PIECE = MIB // 2  # bytes of a small tensor: four share a segment
WHOLE, SHARED = "your fix", "your fix, while another program takes memory"

# --- knobs -------------------------------------------------------------------------------------------------------------
parser = argparse.ArgumentParser(description="fill a device's memory, run out of it, recover")
parser.add_argument("--size", type=int, default=20000, help="rows and columns of each float32 tensor")
parser.add_argument("--steps", type=int, default=200, help="the largest number of tensors to allocate")
parser.add_argument("--budget-mib", type=int, default=0, help="size of the simulated device; 0: the GPU, or 256 without one")
args = parser.parse_args()
if args.size < 16 or args.steps < 1 or args.budget_mib < 0:
    parser.error("--size must be at least 16, --steps at least 1, and --budget-mib not below 0")

# --- set-up ------------------------------------------------------------------------------------------------------------
device = torch.device("cpu") if args.budget_mib else bench.here()
memory = (
    GpuMemory()
    if device.type == "cuda"
    else SimulatedMemory((args.budget_mib or 256) * MIB, CONTEXT_MIB * MIB, has_segments=True)
)
device_text = (
    f"a simulated device of {memory.capacity() / MIB:,.0f} MiB" if memory.simulated else torch.cuda.get_device_name(device)
)
say(f"memory of {device_text}")
nbytes = args.size * args.size * 4
timeline: list[dict] = []


def note(step: str) -> None:
    """Add one line to the timeline, with allocated, reserved and the driver's figure in MiB."""
    row = {
        "step": step, "number": len(timeline), "allocated_mib": memory.allocated() / MIB,
        "reserved_mib": memory.reserved() / MIB, "driver_mib": memory.used() / MIB,
        "driver_free_mib": (memory.capacity() - memory.used()) / MIB,
    }  # fmt: skip
    timeline.append(row)
    say(f"{step:<34} allocated {row['allocated_mib']:>10,.1f}   reserved {row['reserved_mib']:>10,.1f}   "
        f"driver {row['driver_mib']:>10,.1f} MiB")  # fmt: skip


def grow(at_most: int) -> int:
    """Allocate another tensor at each step. If memory suffices, return the number of tensors at the end."""
    tensors = []
    for step in range(at_most):
        tensors.append(torch.empty(args.size, args.size, device=device))
        if step < 3 or (step & (step + 1)) == 0:
            note(f"{len(tensors)} tensor{'s' if len(tensors) > 1 else ''}")
        steps_done[0] = len(tensors)
    return len(tensors)


def load(first: int, count: int) -> torch.Tensor:
    """Return rows of a table that is computed when it is read. Element (r, c) depends on (r + 3c) mod 97."""
    first, count = int(first), int(count)
    if way[0] == SHARED and parts and not other:  # the other program takes what is free, except for a few MiB
        memory.empty_cache()
        room = memory.capacity() - memory.used() - (64 if device.type == "cuda" else 8) * MIB
        other.append(torch.empty(max(0, room), dtype=torch.uint8, device=device))
        memory.reset_peak()
    calls[0] += 1
    if calls[0] <= MAX_CALLS:
        fix_calls.append({"way": way[0], "call": calls[0], "rows": count})
    row = torch.arange(first, first + count, device=device, dtype=torch.int32).remainder_(PERIOD)
    column = torch.arange(COLUMNS, device=device, dtype=torch.int32).mul_(3).remainder_(PERIOD)
    table = row[:, None].float().add(column[None, :]).remainder_(PERIOD).div_(PERIOD)
    parts.append((first, count))
    return table


def count_rows() -> int:
    """Return the number of rows that were read at least once."""
    end = rows = 0
    for first, count in sorted(parts):
        rows += max(0, first + count - max(end, first))
        end = max(end, first + count)
    return rows


def right_sums(rows: int) -> torch.Tensor:
    """Return the sums of squares, computed from the pattern: the table repeats every 97 rows."""
    column = torch.arange(COLUMNS) * 3
    pattern = ((torch.arange(PERIOD)[:, None] + column[None, :]) % PERIOD).double().div(PERIOD).square()
    return pattern.sum(dim=0) * (rows // PERIOD) + pattern[: rows % PERIOD].sum(dim=0)


def fits(byte_count: int) -> bool:
    """Return whether a tensor of this many bytes can be allocated now."""
    try:
        torch.empty(byte_count, dtype=torch.uint8, device=device)
    except torch.OutOfMemoryError:
        return False
    return True


# --- the experiment ----------------------------------------------------------------------------------------------------
steps_done, caught = [0], None
way, parts, calls, other = ["the plain way"], [], [0], []  # who reads, which parts, in how many calls, and the other program
fix_calls: list[dict] = []
table_rows = int(1.2 * memory.capacity() / (4 * COLUMNS))  # a fifth more than fits, even on an empty device
reference = right_sums(table_rows)
with memory:
    baseline = memory.allocated()
    note("at the beginning")
    first = torch.empty(args.size, args.size, device=device)
    second = torch.empty_like(first)
    note("two tensors")
    reserved_full = memory.reserved()
    del first, second
    note("both deleted")
    fell_at_del, reserved_deleted = reserved_full - memory.reserved(), memory.reserved()
    memory.empty_cache()
    note("cache emptied")
    fell_at_empty = reserved_deleted - memory.reserved()

    predicted = min(args.steps, (memory.capacity() - memory.used()) // nbytes)  # by the driver's figure of free memory
    say(f"\nby the driver's figure there is room for {predicted} tensors of {nbytes / MIB:,.1f} MiB; allocating ...")
    try:
        grow(args.steps)
    except torch.OutOfMemoryError as error:
        caught = error  # the frames of its traceback still hold every tensor of `grow`
        say(f"\nout of memory at tensor {steps_done[0] + 1}: {str(error).splitlines()[0][:200]}")
    note("out of memory" if caught else "memory lasted")
    held_by_error = memory.allocated() - baseline
    name = type(caught).__name__ if caught else None
    caught = None  # releases the traceback: only now are the tensors free
    gc.collect()
    note("the error let go")
    memory.empty_cache()
    note("cache emptied again")
    remaining = memory.allocated() - baseline
    repeated = torch.empty(args.size, args.size, device=device)
    recovered = repeated.numel() == args.size**2
    note("one tensor again")
    del repeated
    memory.empty_cache()

    # --- fragments: small tensors fill half of the memory, and every fourth of them stays ------------------------------
    free, reserved_before = memory.capacity() - memory.used(), memory.reserved()
    pieces = [torch.empty(PIECE, dtype=torch.uint8, device=device) for _ in range(free // 2 // PIECE)]
    note(f"{len(pieces):,} small tensors")
    reserved_by_pieces = memory.reserved() - reserved_before
    pieces = pieces[::4]
    memory.empty_cache()
    note("three of four deleted, cache emptied")
    returned = reserved_by_pieces - (memory.reserved() - reserved_before)
    fits_beside = fits(3 * free // 4)
    say(f"a tensor of {3 * free // 4 / MIB:,.0f} MiB {'fits' if fits_beside else 'does not fit'} beside them")
    del pieces
    memory.empty_cache()
    note("all deleted, cache emptied")
    fits_afterwards = fits(3 * free // 4)
    memory.empty_cache()

    # --- a table a fifth larger than the device: the plain way, then your fix ------------------------------------------
    say(f"\na table of {table_rows:,} rows of {COLUMNS} columns, {table_rows * COLUMNS * 4 / MIB:,.0f} MiB in all")
    plain_ran_out = False
    try:
        table = load(0, table_rows)
        (table * table).sum(dim=0)
    except torch.OutOfMemoryError as error:
        plain_ran_out = True
        say(f"the plain way, all of it at once: {str(error).splitlines()[0][:200]}")
    fix_runs = [{"way": way[0], "calls": calls[0], "parts": len(parts), "rows_of_part": None, "peak_mib": None}]
    ran_out, broken, is_open = {}, None, False
    errors: dict[str, float] = {}
    rows_read: dict[str, int] = {}
    for way[0] in (WHOLE, SHARED):
        if is_open or broken or ran_out.get(WHOLE) or errors.get(WHOLE, 0.0) > MAX_ERROR:
            break
        parts.clear()
        calls[0], sums = 0, None
        memory.empty_cache()
        memory.reset_peak()
        try:
            sums = my_fix.sums_of_squares(load, table_rows)
        except torch.OutOfMemoryError as error:
            say(f"{way[0]}: out of memory after {count_rows():,} rows: {str(error).splitlines()[0][:200]}")
            ran_out[way[0]] = True
        except NotImplementedError as error:
            is_open = True
            say(f"{way[0]}: not written yet ({error})")
        except Exception as error:  # noqa: BLE001 (the learner's code may fail in any way, and the traceback shows how)
            broken = f"{type(error).__name__}: {error}"
            traceback.print_exc(file=sys.stdout)
        peak = memory.peak() - sum(tensor.nbytes for tensor in other)
        other.clear()
        rows_read[way[0]] = count_rows()
        if sums is not None:
            sums = torch.as_tensor(sums).detach().double().cpu()
            same = sums.shape == reference.shape
            errors[way[0]] = ((sums - reference).abs().max() / reference.max()).item() if same else float("inf")
            say(f"{way[0]}: ran in {calls[0]} calls of load, of which {calls[0] - len(parts)} found too little memory; "
                f"peak {peak / MIB:,.1f} MiB, largest error {errors[way[0]]:.1e} of the largest sum")  # fmt: skip
            if rows_read[way[0]] != table_rows:
                say(f"it read {rows_read[way[0]]:,} rows of {table_rows:,}")
        if not is_open and not broken:
            fix_runs.append({
                "way": way[0], "calls": calls[0], "parts": len(parts), "peak_mib": peak / MIB,
                "rows_of_part": statistics.median(count for _, count in parts) if parts else None,
            })  # fmt: skip
    shared = None
    if ran_out.get(SHARED):
        shared = f"out of memory after {rows_read[SHARED]:,} of {table_rows:,} rows"
    elif SHARED in errors:
        shared = "right" if errors[SHARED] <= MAX_ERROR else "other sums than on the whole device"

# --- the record ----------------------------------------------------------------------------------------------------------
metrics = {
    **vars(args), "timeline": timeline, "capacity_bytes": memory.capacity(), "tensor_bytes": nbytes,
    "steps_that_fitted": steps_done[0], "steps_predicted": predicted, "prediction_off": abs(steps_done[0] - predicted),
    "out_of_memory": name is not None, "exception": name, "held_by_error_bytes": held_by_error, "left_bytes": remaining,
    "freed_at_del_percent": 100 * fell_at_del / (2 * nbytes),
    "returned_percent": 100 * returned / reserved_by_pieces if reserved_by_pieces else None,
    "fits_beside_fragments": fits_beside, "fits_without_fragments": fits_afterwards,
    "recovered": recovered, "reserved_fell_at_del_bytes": fell_at_del, "reserved_fell_at_empty_cache_bytes": fell_at_empty,
    "peak_mib": max(row["allocated_mib"] for row in timeline), "fix_rows": table_rows,
    "plain_out_of_memory": plain_ran_out, "fix_out_of_memory": None if is_open else ran_out.get(WHOLE, False),
    "fix_broken": None if is_open else broken or "no", "fix_runs": fix_runs, "fix_calls": fix_calls,
    "fix_rows_loaded": None if is_open or broken or ran_out.get(WHOLE) else rows_read[WHOLE],
    "fix_error": errors.get(WHOLE), "fix_shared": shared,
    "simulated": device_text if memory.simulated else None,
}  # fmt: skip
if memory.simulated:
    say("\nThe device is simulated: its size is only a limit, but its error has the same class as on a GPU. (local mode)")
out = Path(os.environ.get("GPUCOURSE_OUT") or ".")
out.mkdir(parents=True, exist_ok=True)
if (part_file := Path(my_fix.__file__)).parent.resolve() != out.resolve():
    shutil.copyfile(part_file, out / "my_fix.py")  # keep the judged file with the results
path = bench.write_metrics("memory_management/1", device, world_size=1, seed=SEED, metrics=metrics)
bench.say_end(path, device)
