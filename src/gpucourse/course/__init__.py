"""The course as data: where it lies, what its manifests say, and what is wrong with them where they are."""
