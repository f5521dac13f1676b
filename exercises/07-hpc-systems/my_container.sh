#!/bin/sh
# Your part of 7.4: a container in a few lines. my_container.sh COMMAND [ARGUMENT ...] runs the command in it.
#
# As delivered it has its own mounts, with the host's files in its root folder; but it sees the host's processes, has the
# host's name, and can write whatever you can write. Give it
#   * its own process numbers, and a /proc that shows them
#   * its own hostname: container
#   * files that no program in it can write, except in /tmp
# Try it: gpucourse try 7.4      Reading: modules/07-hpc-systems/lesson-4-containers.md, "A container in a few lines"
exec unshare --user --map-root-user --mount sh -c '
    set -e
    mount -t tmpfs none /tmp        # only in these mounts: the host keeps its own /tmp
    mkdir /tmp/root
    mount --rbind / /tmp/root
    mount -t tmpfs none /tmp/root/tmp
    exec chroot /tmp/root "$@"
' container "$@"
