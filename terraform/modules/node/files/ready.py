"""Record what this node is and has, as the last step of its set-up: `python ready.py FILE` writes the file completely or not
at all.

If the node has GPUs, its Python must see all of them through torch. The import also copies torch's libraries from the snapshot
to the disk, so that the first exercise does not wait for them.
"""

from __future__ import annotations

import json
import os
import platform
import subprocess
import sys
import time


def main(target: str) -> int:
    """Write what this node has. Return 1, with a reason on stderr, if torch does not see all the GPUs."""
    began = time.monotonic()
    wanted = int(os.environ["GPUS"])
    told = {name.lower(): os.environ[name] for name in ("NAME", "ROLE", "STACK", "PYTHON")}
    mark: dict[str, object] = {
        "version": 1,
        **told,
        "time": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
        "kernel": platform.release(),
        "os": os_name(),
        "python_version": platform.python_version(),
        "gpus": ask_gpus("name") if wanted else [],
        "driver": next(iter(ask_gpus("driver_version")), "") if wanted else "",
    }
    if wanted:
        import torch

        seen = torch.cuda.device_count()
        if seen != wanted:
            print(f"torch {torch.__version__} sees {seen} GPUs of {wanted}", file=sys.stderr)
            return 1
        mark |= {"torch": torch.__version__, "cuda": torch.version.cuda or "", "torch_seconds": time.monotonic() - began}
    aside = f"{target}.new"
    with open(aside, "w", encoding="utf-8") as file:
        json.dump(mark, file, indent=2)
        file.write("\n")
        file.flush()
        os.fsync(file.fileno())
    os.replace(aside, target)
    return 0


def ask_gpus(field: str) -> list[str]:
    """Return the driver's value of one field for each GPU."""
    command = ["nvidia-smi", f"--query-gpu={field}", "--format=csv,noheader"]
    said = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True)
    return [line.strip() for line in said.stdout.splitlines()]


def os_name() -> str:
    """Return the name of the system, such as Ubuntu 24.04.1 LTS."""
    with open("/etc/os-release", encoding="utf-8") as file:
        for line in file:
            if line.startswith("PRETTY_NAME="):
                return line.partition("=")[2].strip().strip('"')
    return platform.system()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
