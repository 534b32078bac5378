"""The command line: one small file per group, assembled by `lcursor/__main__.py`.

These files import typer at the top and everything else inside the commands, so that
`python -m lcursor --help` answers at once. The only package that prints.
"""
