"""The verbs where they differ on machines that exist already: looked at before, never installed on, never destroyed."""
