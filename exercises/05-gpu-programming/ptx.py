"""Compile Triton kernels for GPUs that this computer need not have, and count instructions in the PTX, NVIDIA's assembly
language.

One process cannot both interpret and compile kernels, so `Compilation` starts another process, with this file.
"""

from __future__ import annotations

import importlib
import json
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

COUNTED = {
    "loads": r"\bld\.global\S*",
    "vector_loads": r"\bld\.global\S*\.v[248]\.\S*",
    "async_copies": r"\bcp\.async\.c[ag]\.shared\.global\S*",
    "stores": r"\bst\.global\S*",
    "vector_stores": r"\bst\.global\S*\.v[248]\.\S*",
    "shuffles": r"\bshfl\.\S*",
    "barriers": r"\bbar\.sync\S*",
    "tensor_products": r"\b(?:mma|wgmma\.mma_async)\.sync\S*",
    "tf32_products": r"\b(?:mma|wgmma\.mma_async)\.sync\S*tf32\S*",
    "fma": r"\bfma\.rn\S*",
}


@dataclass(frozen=True)
class Variant:
    """One compilation of a kernel for a GPU ("sm_89"): its parameters with their types ("*fp32", "i32"), and the `values` of a
    launch.

    The parameters in `constants` become constants. If `constants` is empty, those that the kernel declares as tl.constexpr do.
    Of other whole numbers, the compiler knows only whether they are multiples of 16, as at a launch. Torch's
    tensors begin at multiples of 16.
    """

    name: str
    kernel: str
    arch: str
    types: Mapping[str, str]
    values: Mapping[str, int | float | bool]
    constants: Sequence[str] = ()


def count(ptx: str) -> dict[str, int]:
    """Return how often instructions of each kind are in the text. A loop appears once, however often it runs."""
    return {name: len(re.findall(pattern, ptx)) for name, pattern in COUNTED.items()}


class Compilation:
    """A process that compiles `variants` of the kernels in `module` (a file in this folder, without its suffix)."""

    def __init__(self, module: str, variants: Sequence[Variant]) -> None:
        self.variants = variants
        self._folder = tempfile.TemporaryDirectory(prefix="ptx-")
        request = {"module": module, "variants": [asdict(variant) for variant in variants]}
        (Path(self._folder.name) / "request.json").write_text(json.dumps(request), encoding="utf-8")
        environment = {name: value for name, value in os.environ.items() if name != "TRITON_INTERPRET"}
        self._process = subprocess.Popen(
            [sys.executable, str(Path(__file__).resolve()), self._folder.name],
            env=environment | {"TRITON_CACHE_DIR": str(Path(self._folder.name) / "cache")},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
        )

    def finish(self, limit_s: float) -> list[dict[str, Any]]:
        """Return a dictionary for each variant, and end the process after at most `limit_s` seconds.

        It has `name`, `arch`, counts, names of `constants`, `shared_bytes`, `ptx_version` and `ptx`. If the variant could not
        be compiled, its results are None, and `error` says why.
        """
        try:
            output = self._process.communicate(timeout=limit_s)[0]
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.communicate()
            output = f"it did not end within {limit_s:g} s"
        path = Path(self._folder.name) / "results.json"
        results = json.loads(path.read_text(encoding="utf-8")) if path.is_file() else []
        self._folder.cleanup()
        for variant in self.variants[len(results) :]:
            results.append(_failure(variant.name, variant.arch, (output.strip().splitlines() or ["it printed nothing"])[-1]))
        return results


def _failure(name: str, arch: str, error: str) -> dict[str, Any]:
    nothing = dict.fromkeys([*COUNTED, "constants", "shared_bytes", "ptx_version", "ptx"])
    return {"name": name, "arch": arch, **nothing, "error": error[:500]}


def _compile(module: Any, variant: dict[str, Any]) -> dict[str, Any]:
    import triton
    from triton.backends.compiler import GPUTarget
    from triton.compiler import ASTSource

    name, arch, types, values = (variant[key] for key in ("name", "arch", "types", "values"))
    kernel = getattr(module, variant["kernel"])
    names = kernel.arg_names
    if set(names) != set(types):
        return _failure(name, arch, f"{variant['kernel']} must keep its parameters: {', '.join(types)}")
    declared = [parameter.name for parameter in kernel.params if parameter.is_constexpr]
    constants = {key: values[key] for key in names if key in (variant["constants"] or declared)}
    signature = {key: "constexpr" if key in constants else types[key] for key in names}
    attributes = {
        (place,): [["tt.divisibility", 16]]
        for place, key in enumerate(names)
        if key not in constants and (types[key][0] == "*" or (types[key][0] == "i" and values[key] % 16 == 0))
    }
    try:
        source = ASTSource(fn=kernel, signature=signature, constexprs=constants, attrs=attributes)
        compiled = triton.compile(source, target=GPUTarget("cuda", int(arch.removeprefix("sm_")), 32))
    except Exception as error:  # noqa: BLE001 (whatever the compiler refuses is shown in its own words)
        return _failure(name, arch, _explain(error))
    ptx = compiled.asm["ptx"]
    version = re.search(r"\.version\s+(\S+)", ptx)
    return {
        "name": name,
        "arch": arch,
        **count(ptx),
        "constants": sorted(constants),
        "shared_bytes": compiled.metadata.shared,
        "ptx_version": version[1] if version else None,
        "ptx": ptx,
        "error": None,
    }


def _explain(error: Exception) -> str:
    """Return the line of the kernel and the reason, taken from the many lines that Triton prints."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    if not lines:
        return type(error).__name__
    place = lines[0].rstrip(":") if lines[0].startswith("at ") else ""
    code = next((lines[at - 1] for at, line in enumerate(lines) if set(line) == {"^"}), "")
    return f"{type(error).__name__}: {lines[-1]}" + (f" ({place}: {code})" if place else "")


def main(folder: str) -> None:
    """Compile the variants in request.json in `folder`. Write results.json after each of them, so that no result is lost."""
    request = json.loads((Path(folder) / "request.json").read_text(encoding="utf-8"))
    module = importlib.import_module(request["module"])
    results = []
    for variant in request["variants"]:
        results.append(_compile(module, variant))
        aside = Path(folder) / "results.part"
        aside.write_text(json.dumps(results), encoding="utf-8")
        aside.replace(Path(folder) / "results.json")


if __name__ == "__main__":
    main(sys.argv[1])
