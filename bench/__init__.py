"""`python -m lcursor bench`: measure what lcursor costs on this machine. Results in `results/`."""
