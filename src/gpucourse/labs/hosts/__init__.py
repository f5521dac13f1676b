"""Labs on machines that exist already: they are examined first, never installed on, and never destroyed."""
