"""The page of a workspace: files of HTML that a browser opens from the disk."""
