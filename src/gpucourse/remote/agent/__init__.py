"""The program that runs on a node: `python -I -S FOLDER VERB ...`. It uses only the standard library of Python 3.7 or newer,
and is pushed again only when its content has changed.

These modules import nothing from gpucourse except each other, because they are pushed without the rest. They handle paths with
`os.path` and import late, because each verb is a new process: `pathlib` alone would double the time of its start.
"""
