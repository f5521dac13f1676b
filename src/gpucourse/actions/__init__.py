"""The verbs of the course. Each returns a result and tells a watcher what happens meanwhile; none prints."""
