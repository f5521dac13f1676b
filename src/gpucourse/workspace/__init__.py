"""The learner's folder: the path of every file, and how each is read and written without ever losing one."""
