#!/bin/bash
# Ends this node when its deadline has passed. A timer runs this every minute, so it survives a reboot, a stop and a start.
# The deadline is a file with seconds since 1970; writing that file moves the deadline.
set -uo pipefail
root=${GPUCOURSE_ROOT:-}
state=$root/var/lib/gpucourse
grace=300 # seconds after a boot: a node that was stopped past its deadline and started again can still be given more time

read_seconds() { # file: its number, or nothing if the file or the number is missing
  [[ -r $1 && $(head -c 64 "$1" | tr -d '[:space:]') =~ ^([0-9]{9,11})([.][0-9]+)?$ ]] && echo "${BASH_REMATCH[1]}"
}

now=$(date +%s)
up=$(cut -d. -f1 "$root/proc/uptime")
deadline=$(read_seconds "$state/deadline")
if [[ -n $deadline ]]; then
  echo "$deadline" >"$state/deadline.last.new" && mv "$state/deadline.last.new" "$state/deadline.last"
else
  # Damaged or gone: the last deadline that could be read counts; without one, the time since boot.
  deadline=$(read_seconds "$state/deadline.last")
  : "${deadline:=$((now - up + ${TTL_SECONDS:-14400}))}"
  echo "the deadline cannot be read from $state/deadline; $(date -u -d "@$deadline" +%FT%TZ) counts" >&2
fi

if ((now >= deadline && up >= grace)); then
  exec "$root/opt/gpucourse/end-node.sh" "the deadline passed at $(date -u -d "@$deadline" +%FT%TZ)"
fi
