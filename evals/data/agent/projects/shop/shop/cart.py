"""The cart of a customer."""

from shop.prices import discounted, format_price

FREE_SHIPPING = 5000
SHIPPING = 490


class Cart:
    """Items by name, each with a price in cents and a count."""

    def __init__(self, discount=0):
        self.discount = discount
        self.items = {}

    def add(self, name, cents, count=1):
        """Add an item; its count grows if the cart has it already."""
        if count < 1:
            raise ValueError("count must be at least 1")
        _, old = self.items.get(name, (cents, 0))
        self.items[name] = (cents, old + count)

    def remove(self, name, count=1):
        """Remove some of an item; it disappears if none are left."""
        cents, old = self.items[name]
        if old > count:
            self.items[name] = (cents, old - count)
        else:
            del self.items[name]

    def count(self):
        """Return the number of all items."""
        return sum(count for _, count in self.items.values())

    def subtotal(self):
        """Return the price of all items, without discount."""
        return sum(cents * count for cents, count in self.items.values())

    def shipping(self):
        """Return the price of shipping, which is free for large orders."""
        if not self.items or self.subtotal() >= FREE_SHIPPING:
            return 0
        return SHIPPING

    def total(self):
        """Return the price to pay."""
        return discounted(self.subtotal(), self.discount) + self.shipping()

    def lines(self):
        """Return a line of text for each item, sorted by name."""
        return [
            f"{count} x {name}: {format_price(cents * count)}"
            for name, (cents, count) in sorted(self.items.items())
        ]
