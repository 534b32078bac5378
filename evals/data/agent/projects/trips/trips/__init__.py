"""Plan trips."""
