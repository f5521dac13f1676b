"""The course as data: the places of its files, the content of its manifests, and the errors in them, with line numbers."""
