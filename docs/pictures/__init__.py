"""The pictures of the lessons, and what draws them."""
