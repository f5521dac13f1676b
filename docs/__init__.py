"""The pages of the documentation, and what makes their pictures and screens."""
