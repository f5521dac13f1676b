"""The learner's workspace: the paths of its files, and safe ways to read and write them."""
