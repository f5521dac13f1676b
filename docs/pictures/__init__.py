"""The pictures of the lessons, and the programs that draw them."""
