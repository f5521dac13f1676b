"""A pod with two containers, an inference engine and a tracer: checked, started, and traced for one request.

You will learn    what a sidecar is; which parts of a manifest decide what it sees and what it may do; what uprobes need
You will produce  a pod with the fewest privileges, and the first trace of an engine's CUDA calls, equal to its ledger
Run it            python traced_pod.py --tokens 8
Your part         repair my_pod.yaml, until the tracer counts the engine's calls
Reading           modules/B-ebpf-tracing/lesson.md
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import sys
from dataclasses import asdict
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parent.parent / "shared"))  # in a checkout; on a node all files are in one folder

import bench
import cluster
import manifests
import played_pod
import policies
import stand_in
import tracers
from bench import say

SEED = 0
HERE = Path(__file__).resolve().parent

# --- knobs -------------------------------------------------------------------------------------------------------------
parser = argparse.ArgumentParser(description="an engine and its tracer in one pod")
parser.add_argument("--prompt", type=int, default=128, help="length of the request's prompt")
parser.add_argument("--tokens", type=int, default=64, help="number of tokens that the request asks for")
parser.add_argument("--engine", type=str, default="auto", choices=["auto", "stand-in", "vllm"], help="the engine to trace")
args = parser.parse_args()
if args.prompt < 1 or args.tokens < 1:
    parser.error("--prompt and --tokens must be at least 1")
device = bench.here()
out = Path(os.environ.get("GPUCOURSE_OUT") or ".")
out.mkdir(parents=True, exist_ok=True)

# --- the manifest --------------------------------------------------------------------------------------------------------
pod_file = HERE / "my_pod.yaml"
text = pod_file.read_text(encoding="utf-8")
refusal = played_pod.find_refusal(text)
try:
    pod = policies.find_pod(manifests.read(text))
except ValueError:
    pod = {}
rows = [{"policy": policy.policy, "holds": policy.holds, "why": policy.why} for policy in policies.check(pod)]
for row in rows:
    say(f"{row['policy']:11} {'holds' if row['holds'] else row['why']}")
say(f"the API server: {refusal or 'accepts it'}")
if not manifests.has_schemas():
    say("Kubernetes' own schemas: not checked, because kubernetes-validate is not installed here")

# --- the pod -------------------------------------------------------------------------------------------------------------
no_cluster = cluster.find_reason() if device.type == "cuda" or args.engine == "vllm" else "there is no GPU here"
if args.engine == "vllm" and no_cluster:
    sys.exit(f"vLLM in a pod needs a GPU and Kubernetes: {no_cluster} (deploy B --target aws, or --engine auto)")
on_cluster = no_cluster is None and args.engine != "stand-in"
why_not = None if on_cluster else played_pod.find_reason()
tracer_name, played_by, play = None, None, None
try:
    if refusal or why_not:
        say(f"\nThe pod is not started: {refusal or why_not}")
    elif on_cluster:
        tracer_name, played_by = "bpftrace", "k3s"
        play = cluster.play(pod_file, pod, args.prompt, args.tokens)
    else:
        tracer = played_pod.find_tracer(say)
        tracer_name, played_by = tracer.name, "namespaces"
        play = played_pod.play(pod, tracer, args.prompt, args.tokens)
except (
    stand_in.UnsupportedMachine,
    stand_in.EngineEnded,
    tracers.NoTracer,
    tracers.TracerFailed,
    cluster.ClusterFailed,
) as error:
    sys.exit(str(error))

containers = [asdict(box) for box in ((play.engine, play.tracer) if play else ())]
sees = None if play is None or not play.engine.running else "yes" if play.sight.engine else "no"
if play:
    say(f"\nplayed by {played_by}, traced by {tracer_name}:\n")
    bench.say_table(containers, {"name": "container", "running": "running", "restarts": "restarts", "uid": "user",
                                 "why": "why not"})  # fmt: skip
    say(f"the tracer sees {play.sight.processes or 'no'} processes, the engine: {play.sight.engine or 'no'}")
    sights = [name for name, is_visible in (("types", play.sight.btf), ("list of probes", play.sight.tracefs)) if is_visible]
    say(f"from the kernel, it gets: {' and '.join(sights) or 'neither types nor a list of probes'}")

# --- the first trace -------------------------------------------------------------------------------------------------------
calls = play.calls if play else None
ledger = play.ledger if play else None
differences = (
    max(abs(calls.get(api, 0) - ledger[api]) for api in tracers.APIS if api in ledger) if calls is not None and ledger else None
)
trace = {
    "calls": None if calls is None else sum(calls.values()), "off": differences, "by_api": calls,
    "launches": None if calls is None else sum(count for api, count in calls.items() if api.endswith("LaunchKernel")),
}  # fmt: skip
trace["launches_of_500"] = 500 * trace["launches"] / args.tokens if calls else None
trace["launch_percent"] = 100 * trace["launches"] / trace["calls"] if calls else None
by_api = [{"api": api, "name": api.replace("cudaDevice", "").replace("cuda", ""), "calls": count,
           "ledger": ledger.get(api) if ledger else None} for api, count in sorted((calls or {}).items())]  # fmt: skip
if by_api:
    title = f"One request, prompt {args.prompt}, {args.tokens} tokens:"
    bench.say_table(by_api, {"api": "call", "calls": "traced", "ledger": "ledger"}, title=title)

# --- the record ------------------------------------------------------------------------------------------------------------
running = sum(box["running"] for box in containers) if play else None
metrics = {
    **vars(args), "policies": rows, "policies_broken": sum(not row["holds"] for row in rows),
    "refusals": int(refusal is not None), "refusal": refusal, "containers": containers, "running": running,
    "sees_engine": sees, "processes": play.sight.processes if play else None, "first_trace": trace, "by_api": by_api,
    "tracer": tracer_name, "played_by": played_by, "not_played": why_not,
    "gpus_used": policies.count_gpus(pod) if on_cluster and play and play.engine.running else None,
}  # fmt: skip
state = "".join(f"{json.dumps(box)}\n" for box in containers) or f"{refusal or why_not}\n"
(out / "pod-state.txt").write_text(state, encoding="utf-8")
(out / "first-trace.json").write_text(json.dumps(trace, indent=2) + "\n", encoding="utf-8")
if out.resolve() != HERE:
    shutil.copyfile(pod_file, out / pod_file.name)
path = bench.write_metrics("traced-pod/1", device, world_size=1, seed=SEED, metrics=metrics)
bench.say_end(path, device)
