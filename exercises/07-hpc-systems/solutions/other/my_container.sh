#!/bin/sh
# A new root folder on a tmpfs: the host's folders are bound into it one by one, each read-only; then it becomes read-only itself.
exec unshare --user --map-root-user --mount --pid --fork --uts sh -c '
    set -e
    echo container >/proc/sys/kernel/hostname 2>/dev/null || hostname container
    root=/tmp
    mount -t tmpfs none $root
    for folder in /*; do
        name=${folder#/}
        if [ -L "$folder" ]; then
            ln -s "$(readlink "$folder")" "$root/$name"
        elif [ -d "$folder" ] && [ "$name" != proc ] && [ "$name" != sys ] && [ "$name" != tmp ]; then
            mkdir "$root/$name"
            mount --bind "$folder" "$root/$name" || continue
            [ "$name" != dev ] || continue    # devices, not files
            mount -o remount,bind,ro "$root/$name" 2>/dev/null || mount -o remount,bind,ro,nosuid,nodev,noexec "$root/$name" || :
        fi
    done
    mkdir $root/proc $root/tmp
    mount -t proc proc $root/proc
    mount -t tmpfs none $root/tmp
    mount -o remount,ro $root
    exec chroot $root "$@"
' container "$@"
