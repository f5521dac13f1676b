# shellcheck shell=bash
# What the inference exercises need beside torch: transformers in the image's own environment, vLLM in one of its own, since it brings
# a torch of its own. Runs inside setup.sh, which brings step, retry, root and state. A node without vLLM is ready all the same: the
# exercises then take transformers, and say so. What is installed stands in two lists (packages/): every package by its version, and
# one checksum over all the wheels, a line for each Python. Beside them only packages of the system are fetched, where they lack, and
# nothing is run before the checksum is right.
# shellcheck disable=SC2153,SC2154
pip_install() { # times seconds python list: each download ends after so many seconds
  local times=$1 limit=$2 python=$3 list=$4 wheels=$root/var/tmp/gpucourse-wheels version sum actual
  version=$("$python" -c 'import sys; print("%d.%d" % sys.version_info[:2])')
  sum=$(sed -n "s/^# $version //p" "$list")
  [[ -n $sum ]] || { echo "$list has no checksum for Python $version"; return 1; }
  retry "$times" timeout "$limit" "$python" -m pip download --quiet --disable-pip-version-check --no-deps --only-binary=:all: --requirement "$list" --dest "$wheels" || return 1
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

install_toolchain() { # what a virtual environment and vLLM's Triton take, which compiles a module of C on a T4: ensurepip, gcc, Python.h
  local version lacking=()
  version=$("$PYTHON" -c 'import sys; print("%d.%d" % sys.version_info[:2])') || return 1
  "$PYTHON" -c 'import ensurepip' || lacking+=("python$version-venv")
  "$PYTHON" -c 'import os, sys, sysconfig; sys.exit(not os.path.isfile(sysconfig.get_path("include") + "/Python.h"))' ||
    lacking+=("python$version-dev")
  command -v gcc || lacking+=(gcc)
  ((${#lacking[@]} == 0)) || apt_install "${lacking[@]}"
}

step "inference packages"
pip_install 5 120 "$PYTHON" "$root/opt/gpucourse/transformers.txt"
# Once, and for eight minutes at most: pip itself tries again what the network lost, and the first boot is waited for twenty.
step "vllm"
if install_toolchain && "$PYTHON" -m venv "$root/opt/vllm" && pip_install 1 480 "$root/opt/vllm/bin/python" "$root/opt/gpucourse/vllm.txt"; then
  ln -sf /opt/vllm/bin/vllm "$root/usr/local/bin/vllm"
else
  echo "note: vLLM could not be installed; the exercises take transformers instead"
fi
