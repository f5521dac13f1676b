"""The target `here`: this computer with the GPU in it, as one node."""
