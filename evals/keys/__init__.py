"""`eval keys`: how many keys completion saves while the added lines of real commits are typed.

| module | contents |
| --- | --- |
| `insertions` | reads texts to type from the commits of a repository |
| `recorded` | a llama.cpp context that records its logits, and a simulated clock |
| `typist` | types a text against the clock, and accepts what saves keys |
| `completing` | lcursor's completer on that clock |
| `in_neovim` | lcursor in a real Neovim, in real time |
| `command` | the command and its report |
"""
