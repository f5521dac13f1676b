"""Judging what a learner wrote: a judge file of the course calls the learner's code in a child process, and says what is wrong.

`part` is what a judge file is written with, `cases` compares values, `ranks` starts several ranks for it, `child` is the
process, and `client` asks it.
"""

from gpucourse.judge.cases import Case
from gpucourse.judge.part import Part, Way
from gpucourse.judge.verdict import Verdict

__all__ = ["Case", "Part", "Verdict", "Way"]
