#!/bin/bash
# The same with one awk program that reads the queue first and then the table, and one call of scancel.
set -euo pipefail
squeue -h -t R -o "%N %i %b %S" | awk -v mine="$SLURM_JOB_ID" '
  NR == FNR { if ($3 ~ /gpu/ && $2 != mine) { holder[$1] = $2; start[$1] = $4 }; next }
  $2 in holder && $1 >= start[$2] { lines[$2]++; if ($3 >= 5) delete holder[$2] }
  END { for (node in holder) if (lines[node] >= 4) print holder[node] }
' - "$1" | xargs --no-run-if-empty scancel
