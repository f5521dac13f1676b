# shellcheck shell=bash
# shellcheck disable=SC2153,SC2154
# A real Slurm: slurmctld on the head, slurmd on the GPU nodes. setup.sh sources this file and provides step, retry, apt_install, root
# and the variables of node.env; slurm_file, above, has the files of /etc/slurm. Run as a program, it follows changes of the cluster:
# a replaced node has another address, a replaced head another key.
#
# The nodes exchange files in the shared folder, in a directory that belongs to root: nodes/NAME describes each node; the head writes
# hosts and slurm.conf; keys/munge.key exists only while a node lacks it, readable by root alone.

slurm_write() { # path mode; the content comes on stdin. Written whole or not at all, and never with wider permissions than mode
  (umask 077 && cat >"$1.new") && chmod "$2" "$1.new" && mv "$1.new" "$1"
}

slurm_read() { # a file; nothing if it is missing
  [[ ! -e $1 ]] || cat "$1"
}

slurm_key() { # a key's fingerprint; `none` without a key of this cluster
  if [[ -s $1 ]]; then sha256sum <"$1" | cut -d' ' -f1; else echo none; fi
}

slurm_take_key() { # file: install it as this cluster's key, with the permissions that munged requires
  (umask 077 && cat "$1" >"$key.new") && chown munge:munge "$key.new" && chmod 0400 "$key.new" && mv "$key.new" "$key"
  : >"$root/etc/slurm/key-is-ours"
}

slurm_say() { # describe this node: address, key fingerprint, and its line of slurm.conf
  local own=none memory
  [[ ! -e $root/etc/slurm/key-is-ours ]] || own=$(slurm_key "$key")
  memory=$(($(getconf _PHYS_PAGES) * $(getconf PAGE_SIZE) / 1048576))
  local text="$address $own"
  [[ $ROLE == head ]] ||
    text+=$'\n'"NodeName=$NAME NodeAddr=$address CPUs=$(getconf _NPROCESSORS_ONLN) RealMemory=$memory Gres=gpu:$GPUS State=UNKNOWN"
  [[ $text == "$(slurm_read "$cluster/nodes/$NAME")" ]] || slurm_write "$cluster/nodes/$NAME" 0644 <<<"$text"
}

slurm_lead() { # on the head: write the configuration from the nodes' descriptions, and the key for nodes that lack it
  local node place fingerprint own lacking="" hosts="" workers="" names="" text
  own=$(slurm_key "$key")
  for node in "$cluster"/nodes/node*; do
    [[ $node != *.new ]] || continue
    { read -r place fingerprint && read -r text; } <"$node" || text=""
    hosts+="$place ${node##*/} # gpucourse"$'\n'
    [[ $fingerprint == "$own" ]] || lacking+=" ${node##*/}"
    [[ -n $text ]] || continue
    workers+="${workers:+$'\n'}$text" names+="${names:+,}${node##*/}"
  done
  if [[ -z $lacking ]]; then
    rm -f "$cluster/keys/munge.key"
  elif [[ $(slurm_key "$cluster/keys/munge.key") != "$own" ]]; then
    slurm_write "$cluster/keys/munge.key" 0600 <"$key"
  fi
  [[ $hosts == "$(slurm_read "$cluster/hosts")"$'\n' ]] || printf %s "$hosts" | slurm_write "$cluster/hosts" 0644
  [[ -n $workers ]] || return 0
  text=$(slurm_file slurm.conf)
  text=${text/@HEAD@/"$address"} text=${text/@WORKERS@/"$workers"} text=${text/@NAMES@/"$names"}
  [[ $text == "$(slurm_read "$cluster/slurm.conf")" ]] || slurm_write "$cluster/slurm.conf" 0644 <<<"$text"
}

slurm_follow() { # take over what the head wrote; restart the daemon if something changed
  local again=""
  if [[ $ROLE != head && -s $cluster/keys/munge.key ]] && ! cmp -s "$cluster/keys/munge.key" "$key"; then
    slurm_take_key "$cluster/keys/munge.key"
    systemctl restart munge
    again=key
    slurm_say
  fi
  if [[ -s $cluster/hosts ]] && [[ $(sed -n '/# gpucourse$/p' "$root/etc/hosts") != "$(cat "$cluster/hosts")" ]]; then
    { sed '/# gpucourse$/d' "$root/etc/hosts"; cat "$cluster/hosts"; } | slurm_write "$root/etc/hosts" 0644
  fi
  [[ -e $root/etc/slurm/key-is-ours && -s $cluster/slurm.conf ]] || return 0
  if ! cmp -s "$cluster/slurm.conf" "$root/etc/slurm/slurm.conf"; then
    slurm_write "$root/etc/slurm/slurm.conf" 0644 <"$cluster/slurm.conf"
    again=configuration
  fi
  [[ -z $again ]] || { echo "$daemon starts: a new $again" && systemctl restart "$daemon"; }
}

slurm_look() {
  slurm_say
  [[ $ROLE != head ]] || slurm_lead
  slurm_follow
}

slurm_answers() { # whether the daemon works: slurmctld answers; slurmctld lists this node as usable, with its GPUs
  local state
  slurm_look
  if [[ $ROLE == head ]]; then
    state=$(timeout 20 scontrol ping) || return 1
    echo "$state"
    [[ $state == *" UP"* && -s $root/etc/slurm/slurm.conf ]]
  else
    state=$(timeout 20 sinfo -h -N -n "$NAME" -o '%T %G %E') || return 1
    echo "Slurm has $NAME as: ${state:-unknown}"
    [[ $state =~ ^(idle|mixed|allocated|completing)\ .*gpu:$GPUS ]]
  fi
}

slurm_install() {
  local pmix=libpmix2t64 # without the library slurmctld 23.11 gives wrong reasons for waiting jobs
  ! grep -q '^VERSION_ID="22' "$root/etc/os-release" 2>/dev/null || pmix=libpmix2
  # No daemon may start before it has this cluster's key and configuration.
  mkdir -p "$root/usr/sbin" && printf '#!/bin/sh\nexit 101\n' >"$root/usr/sbin/policy-rc.d" && chmod 0755 "$root/usr/sbin/policy-rc.d"
  apt_install "$daemon" slurm-client munge "$pmix"
  rm -f "$root/usr/sbin/policy-rc.d"
  mkdir -p "$root/etc/slurm" "$root/etc/munge" "$root/var/lib/slurm/slurmctld" "$root/var/lib/slurm/slurmd" "$root/var/log/slurm"
  chown slurm:slurm "$root/var/lib/slurm" "$root/var/lib/slurm/slurmctld" "$root/var/log/slurm"
  local devices=0 name
  ((GPUS < 2)) || devices="[0-$((GPUS - 1))]"
  for name in gres.conf cgroup.conf mpi.conf plugstack.conf; do
    slurm_file "$name" | sed "s/@DEVICES@/$devices/" | slurm_write "$root/etc/slurm/$name" 0644
  done
}

slurm_units() { # after a reboot: start slurmd only after the driver's device files exist, and keep following the cluster
  mkdir -p "$root/etc/systemd/system/slurmd.service.d"
  printf '[Service]\nExecStartPre=/usr/bin/nvidia-smi -L\nRestart=on-failure\nRestartSec=5\n' \
    >"$root/etc/systemd/system/slurmd.service.d/gpucourse.conf"
  cat >"$root/etc/systemd/system/gpucourse-slurm.service" <<'END_OF_UNIT'
[Unit]
Description=Follows the nodes of the Slurm cluster
After=network-online.target remote-fs.target
[Service]
EnvironmentFile=/etc/gpucourse/node.env
ExecStart=/bin/bash /opt/gpucourse/stack-setup.sh
Restart=always
RestartSec=10
[Install]
WantedBy=multi-user.target
END_OF_UNIT
  systemctl daemon-reload
  systemctl enable munge "$daemon"
}

root=${root:-}
cluster=$root$SHARED_FOLDER/.gpucourse/$STACK
key=$root/etc/munge/munge.key
daemon=slurmd
[[ $ROLE != head ]] || daemon=slurmctld
address=$(hostname -I | cut -d' ' -f1)

if [[ ${BASH_SOURCE[0]} == "$0" ]]; then
  mountpoint -q "$SHARED_FOLDER" || { echo "$SHARED_FOLDER is not mounted" && exit 1; }
  while slurm_look; do sleep 5; done
  exit 1
fi

step "slurm: nodes meet"
hostnamectl set-hostname "$NAME"
mkdir -p "$root/etc/cloud/cloud.cfg.d"
echo "preserve_hostname: true" >"$root/etc/cloud/cloud.cfg.d/99-gpucourse.cfg" # slurmd looks itself up by this name, also after a restart
mkdir -p "$cluster/nodes"
(umask 077 && mkdir -p "$cluster/keys")
chown root:root "$root$SHARED_FOLDER/.gpucourse" "$cluster" "$cluster/nodes" "$cluster/keys"
chmod 0700 "$cluster/keys"
slurm_say
step "slurm: packages"
slurm_install
slurm_units
if [[ $ROLE == head ]]; then
  step "slurm: key"
  head -c 1024 /dev/urandom >"$root/etc/slurm/key.new"
  chmod 0600 "$root/etc/slurm/key.new"
  slurm_take_key "$root/etc/slurm/key.new"
  rm "$root/etc/slurm/key.new"
  systemctl restart munge
else
  step "slurm: driver"
  retry 36 count_gpus
fi
step "slurm: daemon"
if ! retry 180 slurm_answers; then
  systemctl status --no-pager "$daemon" || echo "note: $daemon does not run"
  false
fi
systemctl enable --now gpucourse-slurm.service
