"""Virtual machines that boot the set-up of a node as EC2 boots it: image, instance metadata, QEMU."""
