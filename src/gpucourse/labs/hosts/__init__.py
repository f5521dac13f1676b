"""Labs on machines that exist already. They are examined first; nothing is installed on them, and they are never destroyed."""
