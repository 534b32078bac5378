// Patterns of paths: "/users/:id" has a name for one part, "/files/*path" one for all the rest.

const escaped = (text) => text.replace(/[.+?^${}()|[\]\\]/g, "\\$&");

/** Return the source of a regular expression for one part of a pattern. */
function partSource(part) {
  if (part.startsWith(":")) return `(?<${part.slice(1)}>[^/]+)`;
  if (part.startsWith("*")) return `(?<${part.slice(1)}>.*)`;
  return escaped(part);
}

/** Return a function that returns the values of a path by name, or null if it does not fit. */
export function compile(pattern) {
  const source = pattern.split("/").map(partSource).join("/");
  const expression = new RegExp(`^${source}/?$`);
  return (path) => {
    const found = expression.exec(path);
    if (!found) return null;
    const values = {};
    for (const [name, text] of Object.entries(found.groups ?? {})) {
      values[name] = decodeURIComponent(text);
    }
    return values;
  };
}

/** Return a path: the pattern with values for its names. */
export function fill(pattern, values) {
  return pattern
    .split("/")
    .map((part) => {
      if (part.startsWith(":")) return encodeURIComponent(values[part.slice(1)]);
      if (part.startsWith("*")) return encodeURI(values[part.slice(1)]);
      return part;
    })
    .join("/");
}
