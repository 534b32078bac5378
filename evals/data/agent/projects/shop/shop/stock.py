"""What a shop has in stock."""


class OutOfStock(Exception):
    """There are not enough of an item."""


class Stock:
    """Counts of items by name."""

    def __init__(self, counts=None):
        self.counts = dict(counts or {})

    def put(self, name, count):
        """Add items."""
        self.counts[name] = self.counts.get(name, 0) + count

    def available(self, name):
        """Return how many there are; 0 for an unknown item."""
        return self.counts.get(name, 0)

    def take(self, wanted):
        """Remove all items of a dictionary of counts, or none of them.

        Raises:
            OutOfStock: there are not enough of an item.
        """
        for name, count in wanted.items():
            if self.available(name) < count:
                raise OutOfStock(name)
        for name, count in wanted.items():
            self.counts[name] -= count

    def missing(self, wanted):
        """Return the items, with counts, of which there are not enough."""
        return {
            name: count - self.available(name)
            for name, count in wanted.items()
            if count > self.available(name)
        }

    def reorder(self, minimum):
        """Return the sorted names of the items of which there are less than a minimum."""
        return sorted(name for name, count in self.counts.items() if count < minimum)
