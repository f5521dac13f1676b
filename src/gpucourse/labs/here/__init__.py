"""The target `here`: this computer with its GPU, as one node."""
