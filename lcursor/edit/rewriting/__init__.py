"""A region written anew by a model: what it reads, what it wrote, whether that is any good."""
