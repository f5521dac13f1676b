#!/bin/sh
# Namespaces for mounts, processes, hostname and IPC; every mount of the host's files read-only; a separate /proc and /tmp.
exec unshare --user --map-root-user --mount --pid --fork --uts --ipc sh -c '
    set -e
    hostname container
    mount -t tmpfs none /tmp
    mkdir /tmp/root
    mount --rbind / /tmp/root
    while read -r _ place _; do
        case $place in
        /tmp/root/dev | /tmp/root/dev/*) ;;    # devices, not files
        /tmp/root | /tmp/root/*)
            mount -o remount,bind,ro "$place" 2>/dev/null || mount -o remount,bind,ro,nosuid,nodev,noexec "$place" 2>/dev/null || :
        esac
    done </proc/self/mounts
    mount -t tmpfs none /tmp/root/tmp
    mount -t proc proc /tmp/root/proc
    exec chroot /tmp/root "$@"
' container "$@"
