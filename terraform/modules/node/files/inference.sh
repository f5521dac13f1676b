# shellcheck shell=bash
# What the inference exercises need beside torch: transformers in the image's own environment, vLLM in one of its own, since it brings
# a torch of its own. Runs inside setup.sh, which brings step, retry and root. A node without vLLM is ready all the same: the
# exercises then take transformers, and say so. Both versions are fixed: their settings and options change between minor versions.
# shellcheck disable=SC2154
step "inference packages"
retry 5 "$PYTHON" -m pip install --quiet --disable-pip-version-check 'transformers==5.23.0' 'psutil>=5.9' 'nvidia-ml-py>=12'
step "vllm"
if "$PYTHON" -m venv "$root/opt/vllm" && retry 3 "$root/opt/vllm/bin/pip" install --quiet --disable-pip-version-check 'vllm==0.33.0'; then
  ln -sf /opt/vllm/bin/vllm "$root/usr/local/bin/vllm"
else
  echo "note: vLLM could not be installed; the exercises take transformers instead"
fi
