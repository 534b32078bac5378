"""Who is on duty when."""
