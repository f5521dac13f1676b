"""A real Slurm without machines, for computers that refuse namespaces: its daemons side by side, on ports of this computer."""
