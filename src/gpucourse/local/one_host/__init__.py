"""A real Slurm without machines, where namespaces are refused: its daemons side by side, on ports of this computer."""
