#!/bin/sh
# Install the system packages that the tests use, if this machine allows it. A test whose package is missing skips and says so;
# if the package was installed here, its name goes into tests/.parts, and a skip is then a failure.
set -eu
here=$(dirname "$0")
parts="$here/.parts"
touch "$parts" # keeps the names from earlier calls
printf '%s\n' moto.server moto boto3 botocore.config torch transformers psutil asyncssh >>"$parts" # these were installed by pip
sort -u -o "$parts" "$parts"

missing=""
for pair in sshd:openssh-server ssh:openssh-client rsync:rsync shellcheck:shellcheck slurmctld:slurmctld slurmd:slurmd sbatch:slurm-client munged:munge slurmdbd:slurmdbd mariadbd:mariadb-server ip:iproute2 newuidmap:uidmap chromium:chromium fish:fish tcsh:tcsh zsh:zsh g++:g++ bpftrace:bpftrace mpirun:openmpi-bin; do
  tool=${pair%%:*}
  if ! command -v "$tool" >/dev/null 2>&1 && [ ! -x "/usr/sbin/$tool" ]; then missing="$missing $pair"; fi
done
install_missing() {
  [ -n "$missing" ] || return 0

  if [ "$(id -u)" = 0 ]; then as_root=""; elif command -v sudo >/dev/null 2>&1 && sudo -n true 2>/dev/null; then as_root="sudo -n"; else
    echo "not installed (no root):$missing; the tests that need them will skip"
    return 0
  fi
  if ! command -v apt-get >/dev/null 2>&1; then
    echo "not installed (no apt-get):$missing; the tests that need them will skip"
    return 0
  fi

  # Slurm's packages would start its daemons, but the tests start their own. A policy that refuses to start services is in place
  # while this installs.
  policy=/usr/sbin/policy-rc.d
  if [ ! -e $policy ]; then
    printf '#!/bin/sh\nexit 101\n' | $as_root tee $policy >/dev/null && $as_root chmod 755 $policy
    trap '$as_root rm -f $policy' EXIT
  fi
  $as_root apt-get update -qq >/dev/null 2>&1 || true
  for pair in $missing; do
    if DEBIAN_FRONTEND=noninteractive $as_root apt-get install -y -qq --no-install-recommends "${pair#*:}" >/dev/null 2>&1; then
      echo "${pair%%:*}" >>"$parts"
    else
      echo "could not install ${pair#*:}; the tests that need it will skip"
    fi
  done
}

# An sshd that root starts needs this folder. Its service creates it; on a machine without a service manager nothing does.
make_sshd_folder() {
  if ! command -v sshd >/dev/null 2>&1 && [ ! -x /usr/sbin/sshd ]; then return 0; fi
  if [ "$(id -u)" = 0 ] && [ -d /run ] && (umask 022 && mkdir -p /run/sshd); then echo /run/sshd >>"$parts"; fi
}

install_missing
make_sshd_folder
