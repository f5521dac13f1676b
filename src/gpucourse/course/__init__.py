"""The course as data: the places of its files, the content of its manifests, and what is wrong with them, by line."""
