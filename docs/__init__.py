"""The pages of the documentation, and the programs that make their pictures and screens."""
