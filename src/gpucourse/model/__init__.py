"""The course's terms: plain data without input or output. People write the data of `manifest`; the program stores the rest."""
