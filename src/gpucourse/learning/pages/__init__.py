"""`open`: what the page of a workspace shows."""
