// Answers to requests: a status, headers with names in lower case, and a body.

/** Return an answer whose body is a value as JSON. */
export function json(value, status = 200) {
  return { status, headers: { "content-type": "application/json" }, body: JSON.stringify(value) };
}

/** Return an answer that sends the browser to another address. */
export function redirect(address, status = 302) {
  return { status, headers: { location: address }, body: "" };
}

/** Return an answer for a request that failed. */
export function problem(status, text, headers = {}) {
  return { status, headers: { "content-type": "text/plain", ...headers }, body: text };
}
