"""From storage to the GPU: read one file in several ways, cold and warm, and read records in a random order with fewer calls.

You will learn    what the page cache hides; what a read call costs; why records are sorted within a window
You will produce  MB/s, read calls and bytes from the disk for each way; your reader compared with the one provided
Run it            python storage.py --megabytes 128
Your part         `batches` in my_reader.py
Reading           modules/07-hpc-systems/lesson-3-storage.md
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parent.parent / "shared"))  # in a checkout; on a node all files are in one folder

import bench
import my_reader
import shards
import staging
from bench import say
from shards import MIB

# --- knobs -------------------------------------------------------------------------------------------------------------
parser = argparse.ArgumentParser(description="one file of records, read in every way")
parser.add_argument("--megabytes", type=int, default=4096, help="size of the file in MiB")
parser.add_argument("--record", type=int, default=4096, help="size of a record in bytes; a multiple of 512")
parser.add_argument("--batch", type=int, default=256, help="records in a batch")
parser.add_argument(
    "--windows", type=int, default=8, help="number of windows of the random order; within a window, any order is allowed"
)
parser.add_argument(
    "--cache",
    choices=["kept", "dropped"],
    default="kept",
    help="dropped: remove the file from the page cache after each window",
)
parser.add_argument("--seed", type=int, default=0, help="seed of the random order")
args = parser.parse_args()
if args.record % 512 or args.record < 512 or args.megabytes < 8 or args.batch < 1 or not 1 <= args.windows <= 64:
    parser.error("--record must be a multiple of 512, --megabytes at least 8, --batch at least 1, and --windows from 1 to 64")
records = args.megabytes * MIB // args.record
if records < args.batch * args.windows:
    parser.error(f"{records} records are fewer than one batch in each of {args.windows} windows: take a larger --megabytes")
window = -(-records // args.windows)
device = bench.here()
out = Path(os.environ.get("GPUCOURSE_OUT") or ".")
out.mkdir(parents=True, exist_ok=True)
place = Path(os.environ.get("TMPDIR") or out)  # in a run it is next to the outputs, and removed with the run's last process
if (free := shutil.disk_usage(place).free) < 3 * args.megabytes * MIB:
    sys.exit(f"{free // MIB:,} MiB are free for the file, but three times {args.megabytes} are needed: "
             "take a smaller --megabytes")  # fmt: skip


def find_filesystem(path: Path) -> str | None:
    """Return the type of a folder's file system, such as ext4, or None if the system does not report it."""
    try:
        process = subprocess.run(["stat", "-f", "-c", "%T", str(path)], capture_output=True, text=True, timeout=10, check=False)
    except OSError:
        return None
    return process.stdout.strip() or None


def deliver(make: shards.Reader, order: list[int]) -> tuple[shards.Delivery, shards.Cost]:
    """Read the file twice with one reader. Return what the checks found in the first pass, and the cost of the second pass,
    which is not checked."""
    delivery = shards.check_delivery(make(path, args.record, list(order), args.batch, window), order, args.batch, window)
    shards.forget(path)

    def take() -> None:
        batches = make(path, args.record, list(order), args.batch, window)
        for _ in shards.forget_each_window(batches, path, window) if args.cache == "dropped" else batches:
            pass

    return delivery, shards.measure(take)


# --- the file, each way ------------------------------------------------------------------------------------------------
rows: list[dict] = []
staged: list[dict] = []
gds: dict[str, object] = {"mode": None, "why": "not measured: there is no GPU here"}
with tempfile.TemporaryDirectory(dir=place, prefix=".shard-") as folder:
    path = Path(folder) / "shard.bin"
    shards.write_shard(path, records, args.record, args.seed)
    for way, (call, cold) in shards.ways().items():
        if cold:
            shards.forget(path)
        try:
            took: list[int] = []
            cost = shards.measure(lambda call=call, took=took: took.append(call(path)))
        except OSError as error:
            rows.append({"way": way, "mb_per_s": None, "read_calls": None, "from_disk_mib": None, "cpu_s_per_gb": None,
                         "why": f"not measured: {error.strerror} on this file system"})  # fmt: skip
            continue
        disk = None if cost.from_disk is None else cost.from_disk / MIB
        from_cache = cold and disk is not None and disk < 0.5 * took[0] / MIB
        rows.append({
            "way": way, "mb_per_s": None if from_cache else took[0] / cost.seconds / 1e6, "read_calls": cost.calls,
            "from_disk_mib": disk, "cpu_s_per_gb": cost.cpu_s / took[0] * 1e9,
            "why": "not measured: these reads did not come from a disk" if from_cache else None,
        })  # fmt: skip
    order = shards.shuffle(records, args.seed)
    _, cost_before = deliver(shards.read_one_by_one, order)
    result, cost_after = deliver(my_reader.batches, order)
    if device.type == "cuda":
        staged, gds = staging.measure(path, device)
say(f"{args.megabytes} MiB in {records:,} records on {find_filesystem(place) or 'an unknown file system'}\n")
bench.say_table(rows, {"way": "way", "mb_per_s": "MB/s", "read_calls": "read calls", "from_disk_mib": "MiB from the disk",
                       "cpu_s_per_gb": "CPU s/GB", "why": ""})  # fmt: skip

# --- the random order ------------------------------------------------------------------------------------------------------
size = records * args.record
readers = []
for name, cost in (("delivered", cost_before), ("yours", cost_after)):
    from_cache = args.cache == "dropped" and cost.from_disk is not None and cost.from_disk < 0.5 * size
    readers.append({
        "reader": name, "way": f"random order, {name}", "read_calls": cost.calls,
        "mb_per_s": None if from_cache else size / cost.seconds / 1e6,
        "copied_times": None if cost.copied is None else cost.copied / size,
        "from_disk_mib": None if cost.from_disk is None else cost.from_disk / MIB, "cpu_s_per_gb": cost.cpu_s / size * 1e9,
    })  # fmt: skip
titles = {
    "reader": "reader",
    "mb_per_s": "MB/s",
    "read_calls": "read calls",
    "copied_times": "copied per wanted",
    "from_disk_mib": "MiB from the disk",
}
bench.say_table(readers, titles, title=f"A random order in {args.windows} windows, page cache {args.cache}:")
same = cost_after.calls is not None and cost_after.calls == cost_before.calls
if same:
    say("Your part is unchanged: my_reader.py")
if staged:
    say("\n" + bench.table(staged, {"way": "to the GPU", "gb_per_s": "GB/s", "cpu_s_per_gb": "CPU s/GB"}))
say(f"\nGPUDirect Storage: {gds['why']}")

# --- the record ------------------------------------------------------------------------------------------------------------
by_way = {row["way"]: row for row in rows}
to_gpu = {row["way"]: row["gb_per_s"] for row in staged}
pinned, pageable = to_gpu.get("pinned, two buffers"), to_gpu.get("pageable")
percent = 100 * cost_after.calls / cost_before.calls if cost_after.calls is not None and cost_before.calls else None
small_speed, large_speed = (by_way[way]["mb_per_s"] for way in ("4 KiB, cold", "1 MiB, cold"))
metrics = {
    **vars(args), "filesystem": find_filesystem(place), "ways": rows, "readers": readers,
    "reads": rows + readers,
    "cold_is_cold": by_way["1 MiB, cold"]["mb_per_s"] is not None, "warm_from_disk_mib": by_way["1 MiB, warm"]["from_disk_mib"],
    "small_of_large_cold": small_speed / large_speed if small_speed and large_speed else None,
    "missing": result.missing, "twice": result.twice, "wrong": result.wrong, "in_windows": result.in_windows,
    "full_batches": result.full_batches, "calls_percent": None if same else percent,
    "calls_saved_times": None if same or not cost_after.calls else cost_before.calls / cost_after.calls,
    "calls_delivered": cost_before.calls, "speedup": cost_before.seconds / cost_after.seconds, "staging": staged, "gds": gds,
    "pinned_gain": pinned / pageable if pinned and pageable else None, "refused": sum(row["refused"] for row in staged),
}  # fmt: skip
if (part_file := Path(my_reader.__file__)).parent.resolve() != out.resolve():
    shutil.copyfile(part_file, out / part_file.name)
path = bench.write_metrics("storage/1", device, world_size=1, seed=args.seed, metrics=metrics)
bench.say_end(path, device)
