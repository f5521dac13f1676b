# shellcheck shell=bash
# What the inference exercises need besides torch: transformers in the image's own environment, vLLM in a separate one, since it
# brings its own torch. Runs inside setup.sh, which defines step, retry, root and state. vLLM comes when the node is ready; without it
# the exercises use transformers, and say so. Two lists (packages/) name what is installed: every package with its version, and
# for each Python one checksum over all the wheels. In addition only missing system packages are fetched, and nothing is run before
# the checksum is right.
# shellcheck disable=SC2153,SC2154
# `--foreground` keeps pip in the process group of a `timeout` around all of this, which else would end and leave it running.
pip_install() { # times seconds python list: each download is stopped after that many seconds
  local times=$1 limit=$2 python=$3 list=$4 wheels=$root/var/tmp/gpucourse-wheels version sum actual
  version=$("$python" -c 'import sys; print("%d.%d" % sys.version_info[:2])')
  sum=$(sed -n "s/^# $version //p" "$list")
  [[ -n $sum ]] || { echo "$list has no checksum for Python $version"; return 1; }
  retry "$times" timeout --foreground "$limit" "$python" -m pip download --quiet --disable-pip-version-check --no-deps --only-binary=:all: --requirement "$list" --dest "$wheels" || return 1
  (cd "$wheels" && sha256sum -- *) | tee "$state/wheels.sha256"
  actual=$(cut -d' ' -f1 "$state/wheels.sha256" | LC_ALL=C sort | sha256sum | cut -d' ' -f1)
  if [[ $actual == "$sum" ]]; then
    "$python" -m pip install --quiet --disable-pip-version-check --no-index --no-deps --find-links "$wheels" --requirement "$list" || return 1
  else
    echo "the wheels of $list have the checksum $actual, not $sum: none is installed"
    rm -rf "$wheels"
    return 1
  fi
  rm -rf "$wheels"
}

install_toolchain() { # what a virtual environment and vLLM's Triton need, which compiles a C module on a T4: ensurepip, gcc, Python.h
  local version lacking=()
  version=$("$PYTHON" -c 'import sys; print("%d.%d" % sys.version_info[:2])') || return 1
  "$PYTHON" -c 'import ensurepip' || lacking+=("python$version-venv")
  "$PYTHON" -c 'import os, sys, sysconfig; sys.exit(not os.path.isfile(sysconfig.get_path("include") + "/Python.h"))' ||
    lacking+=("python$version-dev")
  command -v gcc || lacking+=(gcc)
  ((${#lacking[@]} == 0)) || apt_install "${lacking[@]}"
}

# The line of `vllm` in the state folder tells `status` and the exercises how far it is: "installing UNTIL STEP", with the time in
# seconds since 1970 at which the installation is stopped, then "installed" or "failed WHY".
note_vllm() {
  echo "$*" >"$state/vllm.new"
  mv "$state/vllm.new" "$state/vllm"
}

install_vllm() {
  note_vllm "installing $vllm_until compiler and headers"
  install_toolchain || return 1
  "$PYTHON" -m venv "$root/opt/vllm" || return 1
  note_vllm "installing $vllm_until downloading several GB and installing them"
  pip_install 1 1200 "$root/opt/vllm/bin/python" "$root/opt/gpucourse/vllm.txt"
}

# setup.sh calls this once the node is ready, so that `deploy` does not wait for several GB from the network. At the lowest priority:
# exercises may run meanwhile.
after_ready() {
  trap : TERM # at a shutdown the installation ends, and the line below says so; else exercises would wait for it afterwards
  vllm_until=$(($(date +%s) + VLLM_SECONDS))
  export root state vllm_until
  export -f retry apt_once apt_install pip_install install_toolchain note_vllm install_vllm
  if timeout "$VLLM_SECONDS" nice -n 19 ionice -c 3 bash -euo pipefail -c install_vllm; then
    ln -sf /opt/vllm/bin/vllm "$root/usr/local/bin/vllm"
    note_vllm installed
  else
    echo "note: vLLM could not be installed; the exercises use transformers instead"
    note_vllm "failed see /var/log/gpucourse-setup.log"
  fi
}

VLLM_SECONDS=1800
step "inference packages"
pip_install 5 120 "$PYTHON" "$root/opt/gpucourse/transformers.txt"
# Before the node is ready, so that no exercise starts in between and takes vLLM for absent. The rest of the set-up takes minutes.
note_vllm "installing $(($(date +%s) + VLLM_SECONDS + 600)) waiting until the node is ready"
