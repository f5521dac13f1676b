"""The course's terms: plain data with no input or output. `manifest` is what a person writes, the rest what the program
stores."""
