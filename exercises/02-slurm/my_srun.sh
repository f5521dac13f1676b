# Your part of 2.2: the line that opens a terminal on a GPU node.
#
# You will learn    which options srun needs for a shell that you can type into, and where to put the command
# You will produce  one line, as you would type it on the head of any Slurm cluster
# Try it            gpucourse try 2.2     reads the line as srun would; nothing is started
# Run it            gpucourse ssh 2       takes you to the head; type your line there. run 2.2 types its own for you
# Reading           modules/02-slurm/lesson.md, "A terminal on a node"
#
# Your part         Below, write one line: in the partition gpu, with one GPU and a time limit of 30 minutes, start bash on a
#                   node, with its own terminal.

