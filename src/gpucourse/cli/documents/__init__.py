"""The documents of `--json`: their types, their schema, and how records become documents."""
