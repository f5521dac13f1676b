"""The failure coach: from what a run left behind to the symptom that it shows, and what to do next."""
