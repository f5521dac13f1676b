"""What lies beside the scripts of exercises, imported from where it is."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

from tests.course import FOLDERS


def beside_the_script(folder: str, name: str) -> ModuleType:
    """Return the module `name` of that folder of the exercises. It finds its own neighbours, not those of another exercise that
    have the same name."""
    path = FOLDERS.exercises / folder / f"{name}.py"
    for module_name, module in list(sys.modules.items()):
        file = getattr(module, "__file__", None) or ""  # most modules are of libraries, so a path is made for few
        is_of_exercise = file.startswith(f"{FOLDERS.exercises}/") and not module_name.startswith("exercise_")
        if is_of_exercise and Path(file).parent != path.parent:
            del sys.modules[module_name]
    spec = importlib.util.spec_from_file_location(f"exercise_{name}", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # dataclasses look their module up
    places = [str(path.parent), str(FOLDERS.exercises / "shared")]  # on a node both lie beside the script
    sys.path[:0] = places  # before what another test or script may have added
    try:
        spec.loader.exec_module(module)
    finally:
        for place in places:
            sys.path.remove(place)
    return module
