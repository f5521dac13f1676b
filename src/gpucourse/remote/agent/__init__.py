"""The program that runs on a node. Pushed once for each content, run as `python -I -S FOLDER VERB ...`; stdlib only, Python >=
3.7.

These modules import nothing of gpucourse but each other: they are pushed without the rest. They write paths with `os.path` and
import late, because each verb is a new process and `pathlib` alone would double its start.
"""
