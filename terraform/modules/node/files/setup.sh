#!/bin/bash
# The set-up of a node at its first boot, as root. Last of all it writes /var/lib/gpucourse/ready; if something fails before that, it
# writes /var/lib/gpucourse/failed with the step, the command and the end of the log. The timers that end the node start first.
set -Eeuo pipefail
root=${GPUCOURSE_ROOT:-}
state=$root/var/lib/gpucourse
log=$root/var/log/gpucourse-setup.log
mkdir -p "$state" "$root/var/log"
exec >>"$log" 2>&1
set -a
# shellcheck source=/dev/null
. "$root/etc/gpucourse/node.env"
set +a

current="begin" gave_up=""
step() { # name of the step that begins here
  current=$1
  echo "$1" >"$state/step"
  echo "== $(date -u +%FT%TZ) $1"
}

write_failure() { # status line command
  trap - ERR EXIT
  {
    echo "step '$current' failed at line $2 with status $1: ${gave_up:-$3}"
    echo
    tail -n 40 "$log"
  } >"$state/failed.new"
  mv "$state/failed.new" "$state/failed"
  print_host_keys
  exit 1
}
trap 'write_failure "$?" "$LINENO" "$BASH_COMMAND"' ERR
trap 'set -- "$?"; [[ -e $state/ready ]] || write_failure "$1" "$LINENO" "the set-up ended early"' EXIT

retry() { # times command...: every five seconds until it succeeds, at most that many times
  local tries=$1
  shift
  until "$@"; do
    ((--tries > 0)) || { gave_up=$*; echo "gave up: $*"; return 1; }
    sleep 5
  done
}

apt_once() { # packages...: an image may list third-party repositories, one of which may not answer
  apt-get -o DPkg::Lock::Timeout=120 update -qq || echo "note: not every list of packages could be read"
  apt-get -o DPkg::Lock::Timeout=120 install -y -qq --no-install-recommends "$@"
}

apt_install() { # packages...
  retry 20 apt_once "$@"
}

# The console gives the host keys outside SSH, so that they can be pinned before the first login. cloud-init prints them as well,
# but only after this script.
print_host_keys() {
  {
    echo "-----BEGIN SSH HOST KEY KEYS-----"
    cat "$root"/etc/ssh/ssh_host_*_key.pub
    echo "-----END SSH HOST KEY KEYS-----"
  } >"$root/dev/console"
}

arm_killers() {
  local now deadline
  now=$(date +%s)
  deadline=$(date -u -d "$EXPIRES" +%s)
  # A node that joins late ends with its stack; one that joins a stack after its deadline gets its own.
  ((deadline >= now + 600)) || deadline=$((now + TTL_SECONDS))
  [[ -s $state/deadline ]] || echo "$deadline" >"$state/deadline"
  systemctl daemon-reload
  systemctl enable --now gpucourse-deadline.timer gpucourse-idle.timer
}

be_quiet() { # an upgrade during a lab would replace the driver under a running job, and take processor time from a measurement
  local units=(apt-daily.timer apt-daily-upgrade.timer unattended-upgrades.service)
  # Stopped first: systemd marks a timer as failed if it is masked while active.
  systemctl stop "${units[@]}" || echo "note: not all of ${units[*]} are here"
  systemctl mask "${units[@]}"
  systemctl try-reload-or-restart ssh systemd-logind
}

mount_shared() {
  [[ -x /sbin/mount.nfs4 ]] || command -v mount.nfs4 || apt_install nfs-common
  local options="nfsvers=4.1,rsize=1048576,wsize=1048576,hard,timeo=600,retrans=2,noresvport"
  local folder=$root$SHARED_FOLDER
  mkdir -p "$folder"
  echo "$SHARED_ADDRESS:/ $SHARED_FOLDER nfs4 $options,_netdev,nofail 0 0" >>"$root/etc/fstab"
  retry 36 mount -t nfs4 -o "$options" "$SHARED_ADDRESS:/" "$folder"
  chown ubuntu:ubuntu "$folder"
}

count_gpus() { # compare what the driver sees with what the instance has
  local count
  count=$(nvidia-smi --list-gpus | wc -l)
  echo "the driver sees $count GPUs of $GPUS"
  ((count == GPUS))
}

step "killers"
arm_killers
step "host keys"
print_host_keys
step "quiet"
be_quiet
if [[ -n $SHARED_ADDRESS ]]; then
  step "shared storage"
  mount_shared
fi
step "stack"
# shellcheck source=/dev/null
. "$root/opt/gpucourse/stack-setup.sh"
if ((GPUS > 0)); then
  step "driver"
  retry 36 count_gpus
  nvidia-smi --persistence-mode=1
fi
step "python"
"$PYTHON" "$root/opt/gpucourse/ready.py" "$state/ready"
step "done"
print_host_keys
if declare -F after_ready; then
  trap - ERR EXIT
  after_ready
fi
