"""Ask Slurm what the gathering job waits for, and add the answer to this task's job-ARRAY_TASK.json.

Run it            python work/gather_job.py NUMBER         (in a task, once sbatch has printed the NUMBER of the job)
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

number, array, task = sys.argv[1], os.environ["SLURM_ARRAY_JOB_ID"], os.environ["SLURM_ARRAY_TASK_ID"]
command = ["scontrol", "--oneliner", "show", "job", number]
text = subprocess.run(command, capture_output=True, text=True, check=True).stdout
dependency = re.search(r"Dependency=(\S*)", text)[1]
waits = re.search(rf"afterok:{array}(_\*|\b(?!_))", dependency) is not None
path = Path(os.environ.get("GPUCOURSE_OUT") or ".") / f"job-{array}_{task}.json"
record = json.loads(path.read_text(encoding="utf-8")) | {"gather_job": number, "gather_waits": int(waits)}
path.write_text(json.dumps(record, indent=2) + "\n", encoding="utf-8")
print(
    f"job {number} {'waits' if waits else 'does not wait'} for all tasks of array {array} to succeed: {dependency}", flush=True
)
