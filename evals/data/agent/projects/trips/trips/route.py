"""A network of towns and roads."""

import heapq


class Network:
    def __init__(self):
        self._roads = {}

    def add(self, one, other, km):
        """Add a road, which can be used in both directions."""
        self._roads.setdefault(one, {})[other] = km
        self._roads.setdefault(other, {})[one] = km

    def towns(self):
        """Return all towns, sorted."""
        return sorted(self._roads)

    def neighbours(self, town):
        """Return the sorted towns at the other ends of a town's roads."""
        return sorted(self._roads.get(town, {}))

    def shortest(self, start, end):
        """Return the length of the shortest way and its towns; None if there is no way."""
        queue = [(0, [start])]
        done = set()
        while queue:
            km, way = heapq.heappop(queue)
            town = way[-1]
            if town == end:
                return km, way
            if town in done:
                continue
            done.add(town)
            for other, length in self._roads.get(town, {}).items():
                heapq.heappush(queue, (km + length, [*way, other]))
        return None

    def reachable(self, start):
        """Return all other towns that can be reached, sorted."""
        found = {start}
        waiting = [start]
        while waiting:
            for other in self._roads.get(waiting.pop(), {}):
                if other not in found:
                    found.add(other)
                    waiting.append(other)
        return sorted(found - {start})

    def length(self, way):
        """Return the length of a way along its towns."""
        return sum(self._roads[one][other] for one, other in zip(way, way[1:]))
