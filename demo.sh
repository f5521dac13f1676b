#!/bin/sh
# The first two minutes: a lab of two simulated nodes, a training run on both, and a verified teardown.
set -eu
gpucourse=$1

if [ -t 1 ] && [ -z "${NO_COLOR:-}" ]; then bold=$(printf '\033[1m') plain=$(printf '\033[0m'); else bold="" plain=""; fi
say() { printf '\n%s$ gpucourse %s%s\n' "$bold" "$*" "$plain"; }
step() { say "$@"; "$gpucourse" "$@"; }
# Whatever happens in between, nothing is left.
trap '"$gpucourse" --quiet destroy --all --yes --discard >/dev/null 2>&1 || true' EXIT

step deploy 3
step run 3.2 --nodes 2
trap - EXIT
step destroy --all --yes
