#!/bin/bash
# Powers this node off, which ends it and its bill: EC2 terminates an instance that shuts itself down. The argument is the reason.
set -uo pipefail
root=${GPUCOURSE_ROOT:-}
reason=${1:?the reason is missing}

printf '%s %s\n' "$(date -u +%FT%TZ)" "$reason" >>"$root/var/lib/gpucourse/ended"
timeout 10 logger --tag gpucourse "this node ends: $reason"
echo "gpucourse: this node ends: $reason" >"$root/dev/console"
timeout 10 wall "gpucourse ends this node: $reason"
# A hard NFS mount whose server is gone would block the shutdown, and anything that looks at the folder, such as mountpoint.
timeout 30 umount --internal-only --lazy "$root${SHARED_FOLDER:-/shared}" 2>/dev/null
systemctl poweroff || systemctl poweroff --force || systemctl poweroff --force --force
