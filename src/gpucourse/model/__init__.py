"""The course's terms as plain data, without input or output. People write the data of `manifest`; the program writes all other
data."""
