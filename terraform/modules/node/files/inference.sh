# shellcheck shell=bash
# What the inference exercises need besides torch: transformers in the image's own environment, vLLM in a separate one, since it
# brings its own torch. Runs inside setup.sh, which defines step, retry, root and state. A node without vLLM is ready all the same:
# the exercises then use transformers, and say so. Two lists (packages/) name what is installed: every package with its version, and
# for each Python one checksum over all the wheels. In addition only missing system packages are fetched, and nothing is run before
# the checksum is right.
# shellcheck disable=SC2153,SC2154
pip_install() { # times seconds python list: each download is stopped after that many seconds
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

install_toolchain() { # what a virtual environment and vLLM's Triton need, which compiles a C module on a T4: ensurepip, gcc, Python.h
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
# Once, and for at most eight minutes: pip itself retries after network errors, and `deploy` waits twenty minutes for the first boot.
step "vllm"
if install_toolchain && "$PYTHON" -m venv "$root/opt/vllm" && pip_install 1 480 "$root/opt/vllm/bin/python" "$root/opt/gpucourse/vllm.txt"; then
  ln -sf /opt/vllm/bin/vllm "$root/usr/local/bin/vllm"
else
  echo "note: vLLM could not be installed; the exercises take transformers instead"
fi
