#!/bin/bash
# Your part of 2.2: find the jobs that hold a GPU and do not use it, and give their GPUs back.
#
# You will learn    which job holds a GPU, whether this job uses the GPU, and how to end it and no other
# You will produce  a script that you can use on any Slurm cluster with a table of GPU utilisation
# Try it            gpucourse try 2.2     runs it with a recorded queue; nothing is cancelled
# Run it            gpucourse run 2.2     and in the session: python held.py, which starts it as bash my_release.sh usage.txt
# Reading           modules/02-slurm/lesson.md, "A GPU that is held and not used"
#
# Your part         "$1" is a file with the utilisation of the GPUs; each node has one GPU, and the newest lines are the last:
#                     2026-11-30T14:07:31 node2 97     the time, the node, and the utilisation of its GPU in percent
#                   The table was written before and after jobs came and went, and does not name them. squeue shows which job
#                   holds a GPU now, and since when. Cancel (scancel) every job that holds a GPU and has not used it, and no
#                   other job. A job has used its GPU if it reached 5 percent; a job with fewer than 4 lines of its own may
#                   still be starting, and has to stay. Your own session ($SLURM_JOB_ID) has to stay as well.

