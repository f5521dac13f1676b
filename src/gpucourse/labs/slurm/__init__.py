"""Labs on a Slurm cluster where the learner has an account. Nothing is started there except jobs."""
