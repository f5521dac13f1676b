"""What `--json` prints: the types of the documents, their schema, and how records become documents."""
