"""A real Slurm without machines, for computers that refuse namespaces. Its daemons share this computer and use different
ports."""
