"""Judge a learner's code: a judge file of the course calls the code in a child process and reports what is wrong.

Judge files use `part`. `cases` compares values, `ranks` starts several ranks, `child` is the child process, and `client` sends
requests to it.
"""

from gpucourse.judge.cases import Case
from gpucourse.judge.no_compiler import bring_compiler_in
from gpucourse.judge.part import Part, Way, plant_ways
from gpucourse.judge.verdict import Verdict

__all__ = ["Case", "Part", "Verdict", "Way", "bring_compiler_in", "plant_ways"]
