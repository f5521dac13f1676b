"""The course's terms as plain data, without input or output. People write some of it, such as the manifests; the program
writes the rest.
"""
