#!/bin/bash
# Your part of 2.2: find the job that holds a GPU and does not use it, and give its GPU back.
#
# You will learn    which job holds a GPU, whether it uses the GPU, and how to end that job and no other
# You will produce  a script that you can use on any Slurm cluster with a table of GPU utilisation
# Try it            gpucourse try 2.2     runs it with a recorded queue; nothing is cancelled
# Run it            gpucourse run 2.2     and in the session: python held.py, which starts it as bash my_release.sh usage.txt
# Reading           modules/02-slurm/lesson.md, "A GPU that is held and not used"
#
# Your part         "$1" is a file with the utilisation of each GPU that a job holds; the newest lines are the last:
#                     14:07:31 node2 97      the time, the node, and the utilisation of its GPU in percent
#                   A GPU is unused if all its lines are below 5. squeue tells you which job holds it: each node has one GPU,
#                   each job that holds a GPU is on one node, and other jobs may run there without a GPU.
#                   Cancel (scancel) every job that holds an unused GPU, and no other job. Your own session holds a GPU as well;
#                   it has to stay. $SLURM_JOB_ID is its number.

