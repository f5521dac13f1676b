# shellcheck shell=bash
# What the tracing exercises need beside the GPU: Kubernetes on this one node (k3s, by its own installer) and bpftrace.
# Runs inside setup.sh, which brings step, retry, apt_install and root.
# shellcheck disable=SC2154
step "kubernetes"
# k3s finds the runtime by its name on PATH; with `--default-runtime nvidia` every pod can be given the GPU.
command -v nvidia-container-runtime >/dev/null || { echo "the image has no nvidia-container-runtime" >&2; false; }
retry 20 curl -sfL https://get.k3s.io -o "$root/opt/gpucourse/install-k3s.sh"
export INSTALL_K3S_CHANNEL=stable INSTALL_K3S_EXEC="server --default-runtime nvidia --disable traefik --disable servicelb"
retry 5 sh "$root/opt/gpucourse/install-k3s.sh"
retry 20 k3s kubectl wait --for=condition=Ready node --all --timeout=30s

# For the user who logs in: kubectl works without sudo, also in a shell that reads no profile.
install -d -o ubuntu -g ubuntu -m 0700 "$root/home/ubuntu/.kube"
install -o ubuntu -g ubuntu -m 0600 "$root/etc/rancher/k3s/k3s.yaml" "$root/home/ubuntu/.kube/config"
echo "KUBECONFIG=/home/ubuntu/.kube/config" >>"$root/etc/environment"

step "tracing tools"
[[ -r $root/sys/kernel/btf/vmlinux ]] || { echo "this kernel has no BTF: bpftrace cannot read its types" >&2; false; }
apt_install bpftrace
if apt-cache show "linux-tools-$(uname -r)" >/dev/null; then apt_install "linux-tools-$(uname -r)"; else echo "note: no bpftool for this kernel"; fi
