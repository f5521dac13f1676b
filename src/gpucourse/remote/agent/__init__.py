"""The program that runs on a node. It is pushed again only when its content has changed, and run as `python -I -S FOLDER VERB
...`; stdlib only, Python >= 3.7.

These modules import nothing of gpucourse but each other: they are pushed without the rest. They handle paths with `os.path` and
import late, because each verb is a new process and `pathlib` alone would double its start.
"""
