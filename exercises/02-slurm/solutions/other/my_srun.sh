# The same in short options, over two lines.
srun -t 30 -p gpu --pty \
  -G1 -n 1 /bin/bash --login
