#!/bin/sh
# The first two minutes: a lab of two simulated nodes, a training run on both, and a verified teardown.
set -eu
gpucourse=$1

if [ -t 1 ] && [ -z "${NO_COLOR:-}" ]; then bold=$(printf '\033[1m') plain=$(printf '\033[0m'); else bold="" plain=""; fi
say() { printf '\n%s$ gpucourse %s%s\n' "$bold" "$*" "$plain"; }
step() { say "$@"; "$gpucourse" "$@"; }
# Whatever happens in between, nothing is left.
trap '"$gpucourse" --quiet destroy --all --yes --discard >/dev/null 2>&1 || true' EXIT

printf '\nThis demo types three commands for you, in a workspace of its own.\nWhat you type next is in its last lines.\n'
step deploy 3
if [ -t 0 ]; then printf '\nThe next command asks what you expect of the run.\nAnswer, or press Enter to leave it out.\n'; fi
step run 3.2 --nodes 2
trap - EXIT
step destroy --all --yes

case "${SHELL:-}" in
*/fish) activate=activate.fish ;;
*csh) activate=activate.csh ;;
*) activate=activate ;;
esac
printf '\nThe demo is over. Your own workspace starts empty; the run of the demo is in\n%s\n' "${GPUCOURSE_WORKSPACE:-its workspace}"
printf '\nType next:\n\n'
printf '%s%s%s\n' "$bold" "source $(dirname "$gpucourse")/$activate" "$plain"
printf '%s%s%s\n' "$bold" "gpucourse next" "$plain"
