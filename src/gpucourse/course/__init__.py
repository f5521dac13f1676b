"""The course as data: where its files are, what its manifests contain, and what is wrong with them, by line."""
