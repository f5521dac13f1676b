# shellcheck shell=bash
# What the tracing exercises need besides the GPU: Kubernetes on this one node (k3s, by its own installer) and bpftrace.
# Runs inside setup.sh, which defines step, retry, apt_install and root.
# The downloads run as root, so k3s is pinned by its version and by the checksums of its program and its installer, as published with
# the release (sha256sum-amd64.txt, and install.sh.sha256sum at the same tag). Another release needs all three.
# k3s fetches its own add-ons by tag, so none of them is used: one node needs neither k3s's DNS (a pod that looks up names says
# `dnsPolicy: Default`), nor its storage, nor its metrics. What remains is the image that holds a pod's namespaces, pinned by digest.
# shellcheck disable=SC2154
step "kubernetes"
# k3s finds the runtime by its name on PATH; with `--default-runtime nvidia` every pod can use the GPU.
command -v nvidia-container-runtime >/dev/null || { echo "the image has no nvidia-container-runtime" >&2; false; }
k3s_version=v1.36.5+k3s1
k3s_sha256=d73847bcd3c5fccef0115b372e2f9a91f3032dc84bbf71518a4617565294d313
k3s_installer_sha256=46177d4c99440b4c0311b67233823a8e8a2fc09693f6c89af1a7161e152fbfad

fetch() { # sha256 address path: the file appears only if its checksum is right
  curl -sfL "$2" -o "$3.new" || return 1
  echo "$1  $3.new" | sha256sum --check --quiet || { echo "$2 does not have the checksum $1" >&2; rm -f "$3.new"; return 1; }
  mv "$3.new" "$3"
}

k3s_tag=${k3s_version/+/%2B}
mkdir -p "$root/usr/local/bin"
retry 5 fetch "$k3s_sha256" "https://github.com/k3s-io/k3s/releases/download/$k3s_tag/k3s" "$root/usr/local/bin/k3s"
retry 5 fetch "$k3s_installer_sha256" "https://raw.githubusercontent.com/k3s-io/k3s/$k3s_tag/install.sh" "$root/opt/gpucourse/install-k3s.sh"
chmod 0755 "$root/usr/local/bin/k3s"
k3s_pause=docker.io/rancher/mirrored-pause:3.6@sha256:74c4244427b7312c5b901fe0f67cbc53683d06f4f24c6faee65d4182bf0fa893
k3s_addons=traefik,servicelb,coredns,local-storage,metrics-server
export INSTALL_K3S_SKIP_DOWNLOAD=true
export INSTALL_K3S_EXEC="server --default-runtime nvidia --disable $k3s_addons --pause-image $k3s_pause"
retry 5 sh "$root/opt/gpucourse/install-k3s.sh"
retry 20 k3s kubectl wait --for=condition=Ready node --all --timeout=30s

# For the user who logs in: kubectl works without sudo, even in a shell that reads no profile.
install -d -o ubuntu -g ubuntu -m 0700 "$root/home/ubuntu/.kube"
install -o ubuntu -g ubuntu -m 0600 "$root/etc/rancher/k3s/k3s.yaml" "$root/home/ubuntu/.kube/config"
echo "KUBECONFIG=/home/ubuntu/.kube/config" >>"$root/etc/environment"

step "tracing tools"
[[ -r $root/sys/kernel/btf/vmlinux ]] || { echo "this kernel has no BTF: bpftrace cannot read its types" >&2; false; }
apt_install bpftrace
if apt-cache show "linux-tools-$(uname -r)" >/dev/null; then apt_install "linux-tools-$(uname -r)"; else echo "note: no bpftool for this kernel"; fi
