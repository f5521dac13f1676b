"""The program that runs on a node. It is pushed again only when its content has changed, and run as `python -I -S FOLDER VERB
...`; stdlib only, Python >= 3.7.

These modules import nothing of gpucourse except each other, because they are pushed without the rest. They handle paths with
`os.path` and import late, because each verb is a new process, whose start would take twice as long with `pathlib` alone.
"""
