// The part of an address after the question mark.

const decode = (text) => decodeURIComponent(text.replaceAll("+", " "));

/** Return the names and values of a text like "a=1&b=2&b=3"; a repeated name has a list. */
export function parseQuery(text) {
  const values = {};
  for (const pair of text.split("&")) {
    if (pair === "") continue;
    const [first, ...rest] = pair.split("=");
    const name = decode(first);
    const value = decode(rest.join("="));
    if (Object.hasOwn(values, name)) values[name] = [values[name], value].flat();
    else values[name] = value;
  }
  return values;
}

/** Return the reverse of parseQuery; names without a value are left out. */
export function formatQuery(values) {
  const pairs = [];
  for (const [name, value] of Object.entries(values)) {
    for (const each of [value].flat()) {
      if (each === undefined || each === null) continue;
      pairs.push(`${encodeURIComponent(name)}=${encodeURIComponent(each)}`);
    }
  }
  return pairs.join("&");
}
