"""The course as data: the paths of its files, the content of its manifests, and their errors with line numbers."""
