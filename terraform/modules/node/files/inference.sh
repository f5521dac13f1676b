# shellcheck shell=bash
# What the inference exercises need beside torch: transformers in the image's own environment, vLLM in one of its own, since it brings
# a torch of its own. Runs inside setup.sh, which brings step, retry, root and state. A node without vLLM is ready all the same: the
# exercises then take transformers, and say so. The versions are fixed: settings and options change between minor versions.
# Each is held to the checksum of its wheel on PyPI; what it needs beside it comes by its own ranges, checked by HTTPS alone.
# shellcheck disable=SC2153,SC2154
pip_install() { # times python: installs the lines of standard input, each `name==version --hash=...`, and then what those need
  local times=$1 python=$2 list=$state/packages.txt
  cat >"$list"
  retry "$times" "$python" -m pip install --quiet --disable-pip-version-check --no-deps --require-hashes --requirement "$list" || return 1
  local names
  mapfile -t names < <(cut -d' ' -f1 "$list")
  retry "$times" "$python" -m pip install --quiet --disable-pip-version-check "${names[@]}"
}

step "inference packages"
pip_install 5 "$PYTHON" <<'END_OF_LIST'
transformers==5.23.0 --hash=sha256:018e82fd07490ad5bb58414f65e31576033dc7f36bed10c574843f69b90991bf
psutil==7.2.2 --hash=sha256:076a2d2f923fd4821644f5ba89f059523da90dc9014e85f8e45a5774ca5bc6f9
nvidia-ml-py==13.615.71 --hash=sha256:959bf4adf6fe1308e4bd739e722236b0d1ec8392e2cefad33ff70c311380b9b6
END_OF_LIST
step "vllm"
if "$PYTHON" -m venv "$root/opt/vllm" && pip_install 3 "$root/opt/vllm/bin/python" <<'END_OF_LIST'; then
vllm==0.33.0 --hash=sha256:4b6bdec4ab269990bf70d45a3c1e94c3760a27064513760193b26d6f0da883aa
END_OF_LIST
  ln -sf /opt/vllm/bin/vllm "$root/usr/local/bin/vllm"
else
  echo "note: vLLM could not be installed; the exercises take transformers instead"
fi
