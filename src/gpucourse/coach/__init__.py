"""The failure coach: recognises a symptom in the logs and exit codes of a run, and suggests what to do next."""
