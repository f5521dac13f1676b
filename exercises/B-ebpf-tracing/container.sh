#!/bin/sh
# A container of the played pod: its own root folder in memory, with this computer's programs (read-only) and the manifest's
# folders. Called in its own mount and process namespaces, as
#     container.sh FOLDER USER CAPABILITIES [SOURCE=TARGET=ro|rw]... -- COMMAND...
# FOLDER is any folder: the root is mounted over it, visible only in this namespace. CAPABILITIES are in setpriv's notation.
set -e
root=$1 user=$2 capabilities=$3
shift 3
read_only() { mount -o remount,bind,ro "$1" 2>/dev/null || mount -o remount,bind,ro,nosuid,nodev "$1"; }
mount -t tmpfs -o mode=755 none "$root"
for name in usr bin sbin lib lib64 etc; do
    if [ -L "/$name" ]; then
        ln -s "$(readlink "/$name")" "$root/$name"
    elif [ -d "/$name" ]; then
        mkdir "$root/$name"
        mount --bind "/$name" "$root/$name"
        read_only "$root/$name"
    fi
done
for name in sys/devices sys/bus; do # the rest of /sys is there only if the manifest mounts it
    mkdir -p "$root/$name"
    mount --bind "/$name" "$root/$name"
    read_only "$root/$name"
done
mkdir "$root/dev" "$root/proc"
mkdir -m 1777 "$root/tmp"
for name in null zero urandom; do
    : >"$root/dev/$name"
    mount --bind "/dev/$name" "$root/dev/$name"
done
mount -t proc none "$root/proc"
while [ "$1" != -- ]; do
    source=${1%%=*} target=${1#*=} mode=${1##*=}
    target=${target%=*}
    case $source in
    *.sh) # copied and readable by everybody, like a ConfigMap
        mkdir -p "$root${target%/*}"
        cat "$source" >"$root$target"
        chmod 644 "$root$target"
        shift
        continue
        ;;
    esac
    if [ -d "$source" ]; then
        mkdir -p "$root$target"
    else
        mkdir -p "$root${target%/*}"
        : >>"$root$target"
    fi
    case $source in
    */tracing) mount -t tracefs none "$root$target" 2>/dev/null || mount --bind "$source" "$root$target" ;; # on this computer tracefs may not be mounted
    *) mount --bind "$source" "$root$target" ;;
    esac
    [ "$mode" = rw ] || read_only "$root$target"
    shift
done
shift
cd "$root"
PATH="$PATH:/usr/sbin:/sbin" pivot_root . . # the root of a real container is the root of its mounts: paths in /proc/PID/maps begin there
umount -l .
if [ "$user" = 0 ]; then
    exec setpriv --bounding-set "$capabilities" --inh-caps=-all "$@"
fi
exec setpriv --bounding-set "$capabilities" --inh-caps=-all --reuid "$user" --regid "$user" --clear-groups "$@"
