"""Labs on machines that exist already. The machines are examined first; nothing is installed on them, and they are never
destroyed."""
