import { compile, fill } from "./pattern.js";
import { parseQuery } from "./query.js";
import { problem } from "./respond.js";

/** Finds the handler of a request: a function that returns an answer or a promise of one. */
export class Router {
  #routes = [];
  #wrappers = [];

  /** Add a handler; of several that fit a request, the first one answers. */
  add(method, pattern, handler, name = pattern) {
    this.#routes.push({ method, pattern, handler, name, match: compile(pattern) });
    return this;
  }

  /** Add a function (request, next) that is called before the handlers; next() goes on. */
  use(wrapper) {
    this.#wrappers.push(wrapper);
    return this;
  }

  /** Return the path of a route by its name. */
  pathOf(name, values = {}) {
    const route = this.#routes.find((each) => each.name === name);
    if (!route) throw new Error(`no such route: ${name}`);
    return fill(route.pattern, values);
  }

  /** Return a promise of the answer to a request with a method and a url. */
  async handle(method, url) {
    const [path, query = ""] = url.split(/\?(.*)/s);
    const request = { method, path, query: parseQuery(query), params: {} };
    try {
      return await this.#run(request, 0);
    } catch (error) {
      return problem(500, `error: ${error.message}`);
    }
  }

  async #run(request, index) {
    const wrapper = this.#wrappers[index];
    if (wrapper) return wrapper(request, () => this.#run(request, index + 1));
    return this.#answer(request);
  }

  #answer(request) {
    const allowed = new Set();
    for (const route of this.#routes) {
      const params = route.match(request.path);
      if (!params) continue;
      if (route.method === request.method) return route.handler({ ...request, params });
      allowed.add(route.method);
    }
    if (allowed.size === 0) return problem(404, "not found");
    return problem(405, "method not allowed", { allow: [...allowed].sort().join(", ") });
  }
}
