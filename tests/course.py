"""The course of this repository, whose manifests each process reads only once."""

from __future__ import annotations

from gpucourse.course.catalog import load
from gpucourse.course.locate import find_course

FOLDERS = find_course({})
CATALOG = load(FOLDERS)
