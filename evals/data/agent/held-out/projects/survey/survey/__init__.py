"""What people answered."""
