#!/bin/bash
unused=$(awk '{ if ($3 > most[$2]) most[$2] = $3; nodes[$2] } END { for (node in nodes) if (most[node] < 5) print node }' "$1")
squeue --noheader --states=RUNNING --format="%i %N %b" | while read -r job node gpus; do
  if [[ $job != "$SLURM_JOB_ID" && $gpus == *gpu* ]] && grep -qxF "$node" <<< "$unused"; then
    scancel "$job"
  fi
done
