"""What each command shows: plain functions from the course's words to a `View`. Nothing here draws."""
