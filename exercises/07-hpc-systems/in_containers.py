"""The same measurement without a container, in every installed engine and in your own; and the files of two images.

You will learn    what a container separates from its host, and what it shares; what a start costs; which faults an image can
have
You will produce  one product and one sum in every engine; the files that a program sees in an image of six layers; an image
                  for Docker and one for Apptainer without faults
Run it            python in_containers.py --engines bare,namespaces
Your part         my_container.sh; `see` in my_layers.py; the faults of my_dockerfile.txt and of my_definition.def
Reading           modules/07-hpc-systems/lesson-4-containers.md
"""

from __future__ import annotations

import argparse
import os
import shutil
import statistics
import sys
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parent.parent / "shared"))  # in a checkout; on a node all files are in one folder

import bench
import containers
import images
import layers
import own_part
from bench import say

SEED = 0
HERE = Path(__file__).resolve().parent
FILES = ("my_container.sh", "my_dockerfile.txt", "my_definition.def", "my_layers.py")

# --- knobs -------------------------------------------------------------------------------------------------------------
parser = argparse.ArgumentParser(description="one measurement in every container engine that is here")
parser.add_argument(
    "--engines", type=str, default="bare,namespaces,charliecloud,docker,podman,apptainer", help="which engines to try"
)
parser.add_argument(
    "--driver", type=str, default="570.172", help="version of NVIDIA's driver with which the images have to work"
)
parser.add_argument("--repeats", type=int, default=5, help="number of starts of each engine; the median counts")
args = parser.parse_args()
engines = args.engines.split(",")
if unknown := [name for name in engines if name not in containers.ENGINES]:
    parser.error(f"there is no engine {unknown[0]}: {', '.join(containers.ENGINES)}")
if not args.driver.partition(".")[0].isdigit() or args.repeats < 1:
    parser.error("--driver must be a version such as 570.172, and --repeats at least 1")
containers.need_linux()
device = bench.here()
out = Path(os.environ.get("GPUCOURSE_OUT") or ".")
out.mkdir(parents=True, exist_ok=True)

# --- every engine --------------------------------------------------------------------------------------------------------
host, _ = containers.look([])
rows: list[dict] = []
views: dict[str, dict] = {}
for engine in engines:
    row: dict = {"engine": engine, "why_not": containers.find_reason(engine)}
    if row["why_not"] is None:
        with containers.open_engine(engine, HERE / "my_container.sh", device.type == "cuda") as prefix:
            views[engine], row["why_not"] = containers.look(prefix)
            if row["why_not"] is None:
                row["start_ms"] = containers.time_start(prefix, args.repeats) * 1e3
                printed, row["why_not"] = containers.run(prefix, containers.PRODUCT)
                words = printed.split()
                row |= {"product_ms": float(words[0]), "value": float(words[1]), "on": words[2]} if len(words) == 3 else {}
    view = views.get(engine, {})
    is_inside = view and engine != "bare"
    rows.append({
        "engine": engine, "there": bool(view), "why_not": row["why_not"] and f"not measured: {row['why_not']}",
        "start_ms": row.get("start_ms"), "product_ms": row.get("product_ms"), "value": row.get("value"),
        "pids_seen": view.get("pids"), "hostname_own": view["hostname"] != host["hostname"] if is_inside else None,
        "root_writable": "/" in view["writable"] if is_inside else None, "uid_inside": view.get("uid"),
        "gpus_seen": len(view["gpus"]) if view else None, "memory_limit": view.get("memory_limit") or None,
    })  # fmt: skip
    say(f"{engine}: {rows[-1]['why_not'] or 'measured'}")
titles = {"engine": "engine", "start_ms": "start, ms", "product_ms": "product, ms", "pids_seen": "processes seen",
          "hostname_own": "own name", "root_writable": "can write /", "uid_inside": "user inside"}  # fmt: skip
bench.say_table(rows, titles)

# --- the layers of an image: what the kernel shows of them, and what my_layers.py says ------------------------------------
by_kernel, why_not_kernel = layers.see_by_kernel(layers.list_paths())
outcome = own_part.Process(FILES[3]).run(None, "layers:see_by_part", limit_s=20, layers=layers.list_paths())
by_part = outcome.results[0] if outcome.state == "ran" else None
files = layers.compare(by_kernel, by_part)
bench.say_table(files, {"layer": "layer", "step": "step", "file": "file", "mb": "MB", "kernel": "seen", "yours": "yours"})
if why_not_kernel:
    say(f"the kernel cannot show this image here: {why_not_kernel}")
if outcome.state == "open":
    say("my_layers.py is unchanged. Once it is written, the column yours says which files a program sees")
elif outcome.state == "failed":
    say(f"my_layers.py: {outcome.text}")
changed_of_file, why_not_changed = layers.measure_change()
if changed_of_file is None:
    say(f"a layer that changes only the permissions of a file: not measured: {why_not_changed}")
else:
    say(f"a layer that changes only the permissions of a file has {changed_of_file:.2f} times the bytes of the file")

# --- the images ----------------------------------------------------------------------------------------------------------
lint = []
for name in FILES[1:3]:
    faults = images.find_faults((HERE / name).read_text(encoding="utf-8"), args.driver)
    lint += [{"file": name, "fault": fault.word, "line": fault.line, "says": fault.says} for fault in faults]
    say(f"{name}: {len(faults) or 'no'} {'fault' if len(faults) == 1 else 'faults'}, with driver {args.driver}")

# --- the record ------------------------------------------------------------------------------------------------------------
ran = [row for row in rows if row["there"]]
container = views.get("namespaces")
products = [row["product_ms"] for row in ran if row["product_ms"] is not None]
metrics = {
    **vars(args), "tried": rows, "engines_run": len(ran) if container or len(ran) > 1 else None, "lint": lint,
    "faults_left": len(lint), "faults_docker": sum(row["file"] == FILES[1] for row in lint),
    "faults_apptainer": sum(row["file"] == FILES[2] for row in lint), "values": len({row["value"] for row in ran} - {None}),
    "files": files, "layer_sizes": layers.sum_sizes(files), "changed_of_file": changed_of_file,
    "layers_failed": outcome.text if outcome.state == "failed" else None,
    "files_wrong": None if by_kernel is None or outcome.state == "open"
    else len(files) if by_part is None else sum(row["kernel"] != row["yours"] for row in files),
    "pulled_mb": sum(row["mb"] or 0 for row in files),
    "hidden_mb": None if by_kernel is None else sum(row["mb"] or 0 for row in files if not row["kernel"]),
    "host_pids": host["pids"], "container_pids": container["pids"] if container else None,
    "own_hostname": container["hostname"] == "container" if container else None,
    "writable": container["writable"] if container else None,
    "places_writable": len(container["writable"]) if container else None,
    "product_spread_percent": 100 * (max(products) / min(products) - 1) if len(products) > 1 else None,
    "product_median_ms": statistics.median(products) if products else None,
    "gpus_inside": max((row["gpus_seen"] or 0 for row in ran[1:]), default=None) if host["gpus"] else None,
    "libraries_injected": sorted({place for view in views.values() for place in view.get("injected", ())}),
}  # fmt: skip
say(f"a pull of the example image fetches {metrics['pulled_mb']:,} MB")
for name in FILES:
    if out.resolve() != HERE:
        shutil.copyfile(HERE / name, out / name)
path = bench.write_metrics("containers/1", device, world_size=1, seed=SEED, metrics=metrics)
bench.say_end(path, device)
