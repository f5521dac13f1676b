#!/bin/bash
# The same with one awk program that reads the queue first and then the table, and one call of scancel.
set -euo pipefail
squeue -h -t R -o "%N %i %b" | awk -v mine="$SLURM_JOB_ID" '
  NR == FNR { if ($3 ~ /gpu/ && $2 != mine) holder[$1] = $2; next }
  $2 in holder && $3 >= 5 { delete holder[$2] }
  END { for (node in holder) print holder[node] }
' - "$1" | xargs --no-run-if-empty scancel
