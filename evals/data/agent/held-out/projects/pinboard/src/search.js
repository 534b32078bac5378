/** Return the cards whose title or tags have all words of a text, in any case. */
export function find(store, text) {
  const words = text.toLowerCase().split(/\s+/).filter(Boolean);
  return store.cards().filter((card) => {
    const has = [card.title, ...card.tags].join("\n").toLowerCase();
    return words.every((word) => has.includes(word));
  });
}

/** Return the cards that are due until a day, the earliest first. */
export function due(store, day) {
  return store
    .cards()
    .filter((card) => card.due !== null && card.due <= day)
    .sort((one, other) => one.due - other.due);
}

/** Return how many cards have each tag. */
export function tagCounts(store) {
  const counts = {};
  for (const card of store.cards()) {
    for (const tag of card.tags) counts[tag] = (counts[tag] ?? 0) + 1;
  }
  return counts;
}
