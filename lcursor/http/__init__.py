"""HTTP to servers of models: requests that any thread can stop at once, and errors with a hint."""
