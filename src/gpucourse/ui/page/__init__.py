"""The page of a workspace: HTML files that a browser opens from the disk."""
