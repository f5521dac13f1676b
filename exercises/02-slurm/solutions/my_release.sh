#!/bin/bash
squeue --noheader --states=RUNNING --format="%i %N %b %S" | while read -r job node gpus start; do
  if [[ $job != "$SLURM_JOB_ID" && $gpus == *gpu* ]] && awk -v node="$node" -v start="$start" '
    $2 == node && $1 >= start { lines++; if ($3 >= 5) used = 1 }
    END { exit !(lines >= 4 && !used) }' "$1"; then
    scancel "$job"
  fi
done
