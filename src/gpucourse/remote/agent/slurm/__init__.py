"""A run under Slurm, on the node that accepts its jobs. No gpucourse process keeps running there: each verb queries Slurm, and
the state of the run is in these files.

slurm.json      the client's request
<name>.sbatch   a file for sbatch
jobs.json       the submitted jobs
submitted       exists once all files have been submitted
seen.json       the last known state of the jobs
places.json     the folders for the jobs' temporary files and caches
ended-<job>     the job's own note of its end
errors-<job>    exists once the job's error file has been added to its log
watch           the lock that a process holds while it queries Slurm about the run
"""
