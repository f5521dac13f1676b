#!/bin/sh
# Every shell script of the project through shellcheck.
set -eu
cd "$(dirname "$0")/.."
command -v shellcheck >/dev/null 2>&1 || { echo "shell scripts were not checked: shellcheck is not installed (make system-deps)" >&2; exit 0; }
shellcheck demo.sh .ci/run .ci/stranger tests/system-parts.sh tests/shell-lint.sh terraform/modules/node/files/*.sh terraform/modules/*/boot/*.sh terraform/stacks/*/files/*.sh
