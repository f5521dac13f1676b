"""Judging what a learner wrote: a judge file of the course calls the learner's code in a child process and reports what is
wrong.

A judge file is written with `part`. `cases` compares values, `ranks` starts several ranks, `child` is the process, and `client`
sends it requests.
"""

from gpucourse.judge.cases import Case
from gpucourse.judge.part import Part, Way
from gpucourse.judge.verdict import Verdict

__all__ = ["Case", "Part", "Verdict", "Way"]
