#!/bin/sh
# The tracer of the pod: finds the engine among the processes that it sees, and counts its CUDA calls with bpftrace.
# Usage: sidecar.sh SECONDS [look]. It waits at most SECONDS for an engine; with `look` it ends once it sees the engine.
# It prints `user`, `btf`, `tracefs` and `processes`, then `engine PID LIBRARY` or `blind`; then the output of bpftrace: all counts
# several times a second, each time followed by `{"type": "printf", "data": "counted\n"}`.
set -e
seconds=$1 way=$2
count_processes() { set -- /proc/[0-9]* && echo "processes $#"; }
echo "user $(id -u)"
echo "btf $([ -r /sys/kernel/btf/vmlinux ] && echo yes || echo no)"
echo "tracefs $([ -w /sys/kernel/tracing/uprobe_events ] && echo yes || echo no)"

library=
find_engine() {
    for place in /proc/[0-9]*; do
        library=$(sed -n 's|^[^/]* \(/.*/libcudart\.so[.0-9]*\)$|\1|p' "$place/maps" 2>/dev/null | head -n 1)
        if [ -n "$library" ]; then
            engine=${place#/proc/}
            return 0
        fi
    done
    return 1
}

remaining=$((seconds * 5))
until find_engine; do
    remaining=$((remaining - 1))
    if [ "$remaining" -le 0 ]; then
        count_processes
        echo "blind: the tracer sees no process whose /proc/PID/maps it may read and which uses libcudart"
        exit 3
    fi
    sleep 0.2
done
count_processes
echo "engine $engine $library"
[ "$way" != look ] || exit 0
if [ ! -r /sys/kernel/btf/vmlinux ]; then
    echo "no types of the kernel: /sys/kernel/btf/vmlinux cannot be read"
    exit 4
fi

# The library is among the engine's own files: /proc/PID/root leads there.
path=/proc/$engine/root$library
if [ ! -r "$path" ]; then
    echo "no permission to read /proc/$engine/root: the engine's files"
    exit 5
fi
apis='cudaMalloc|cudaFree|cudaMemcpy|cudaMemcpyAsync|_*cudaLaunchKernel|cudaGraphLaunch|cudaDeviceSynchronize'
names=$(tr '\0' '\n' <"$path" | grep -xE "$apis" | sort -u) # a probe on a function that the library lacks is refused
quoted=\"$(printf '%s' "$path" | sed 's/[\\"]/\\&/g')\" # it may have a space or a colon
probes=
for name in $names; do
    probes="$probes uprobe:$quoted:$name { @calls[\"$name\"] = count(); }"
done
exec bpftrace -f json -e "$probes interval:ms:200 { print(@calls); printf(\"counted\\n\"); }" 2>&1
