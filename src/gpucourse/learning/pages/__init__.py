"""`open`: the content of a workspace's page."""
