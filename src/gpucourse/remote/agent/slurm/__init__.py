"""A run under Slurm, on the node that accepts its jobs. No gpucourse process keeps running there: each verb queries Slurm, and
the state of the run is in these files.

slurm.json   the request           <name>.sbatch   the file that is submitted   ended-<job>    a job's own note of its end
jobs.json    the submitted jobs    seen.json       their last known state       errors-<job>   its error file is in its log
submitted    all are submitted     places.json     where jobs put temporary files
watch        held while Slurm is asked
"""
