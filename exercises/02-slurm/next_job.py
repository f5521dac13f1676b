"""Ask Slurm about the job that follows this one, and add its dependency and its time limit to job-NUMBER.json.

Run it            python work/next_job.py NUMBER         (in a job, once sbatch has printed the NUMBER of the next one)
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

PRODUCTS, START_S, MARGIN_S = 1000, 60, 300  # the next job's work, the time for its start, and what it may ask for in addition

number, job = sys.argv[1], os.environ["SLURM_JOB_ID"]
command = ["scontrol", "--oneliner", "show", "job", number]
text = subprocess.run(command, capture_output=True, text=True, check=True).stdout
days, hours, minutes, seconds = re.search(r"TimeLimit=(?:(\d+)-)?(\d+):(\d+):(\d+)", text).groups(default="0")
limit_s = ((int(days) * 24 + int(hours)) * 60 + int(minutes)) * 60 + int(seconds)
path = Path(os.environ.get("GPUCOURSE_OUT") or ".") / f"job-{job}.json"
record = json.loads(path.read_text(encoding="utf-8"))
need_s = PRODUCTS * record["matmul_ms"] / 1e3 + START_S
record |= {
    "next_job": number, "next_need_s": need_s, "next_limit_s": limit_s,
    "next_waits": int(re.search(rf"Dependency=\S*afterok:{job}\b", text) is not None),
    "next_fits": int(need_s <= limit_s <= need_s + MARGIN_S),
}  # fmt: skip
path.write_text(json.dumps(record, indent=2) + "\n", encoding="utf-8")
verb = "waits" if record["next_waits"] else "does not wait"
print(f"job {number} needs at most {need_s:.0f} s and may take {limit_s} s; it {verb} for job {job} to succeed", flush=True)
