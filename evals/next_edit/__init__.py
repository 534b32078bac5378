"""`eval next`: replay commits as edits, and judge the next edits that lcursor proposes."""
