"""A project: its root, its files, ignore rules, secrets, git, and limited reads of files.

Used by the index, by the context of messages and by edits.

    from lcursor.project import ignore, listing
    from lcursor.project.root import root_of

    root = root_of(Path("src/app/main.py"))
    listing.survey(root).files  # [Found("src/app/main.py", 1200, 1763850000000000000), ...]
    ignore.why(root, "build/a.o")  # "git ignores it: .gitignore:3: build/"
"""
