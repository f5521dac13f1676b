"""The learner's folder: where every file lies, and how each is read and written without ever losing one."""
