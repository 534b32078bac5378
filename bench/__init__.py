"""What the product costs, measured on the machine at hand: `python -m lcursor bench`."""
