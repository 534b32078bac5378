"""Words that mean the same to people who develop software, by their stems. Pure."""

from __future__ import annotations

from typing import Final

from lcursor.index import words

GROUPS: Final = """
add append attach insert
answer comment reply respond
ask query question
assign owner
browse navigate visit
bug defect error failure crash exception
build compile
cancel abort stop kill end terminate
change alter edit modify update
check inspect status validate verify
ci pipeline workflow actions
clear delete drop erase remove
client customer
cluster kubernetes
colleague member person people teammate user
column field
compare diff difference
connect link relate
container docker
convert translate transform
copy clone duplicate fork
create file generate make new open start
database db postgres sql
deployment replica scale
dir directory folder
document page wiki
download fetch
email mail
emoji reaction
execute launch run start
fact knowledge memory note remember
fast performance slow
find locate look search
get obtain open read retrieve see show view
history log
image photo picture screenshot
input form field
issue task ticket
land merge
list overview
message post say send tell write
metadata size
move rename
output log
pr pull
press click
project repository repo
publish release
save store
schedule calendar event
site web website page url internet
sprint iteration
stage index
table relation
team workspace
text content
tree structure hierarchy
type enter
version revision
""".strip().splitlines()
PHRASES: Final = {"pr": "pull request", "prs": "pull requests", "mr": "merge request"}
"""Abbreviations of several words."""


def _by_stem() -> dict[str, frozenset[str]]:
    found: dict[str, set[str]] = {}
    for line in GROUPS:
        stems = {words.stem(word) for word in line.split()}
        for stem in stems:
            found.setdefault(stem, set()).update(stems - {stem})
    return {stem: frozenset(others) for stem, others in found.items()}


SYNONYMS: Final = _by_stem()
