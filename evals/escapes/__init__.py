"""Try to escape from the sandbox, each attempt on a pretended machine made for it."""
