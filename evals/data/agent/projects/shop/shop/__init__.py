"""A small shop: prices, carts and stock."""
