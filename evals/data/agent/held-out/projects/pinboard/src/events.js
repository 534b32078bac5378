/** Functions that are called when something happens. */
export class Events {
  #listeners = new Map();

  /** Call a function at each event of a name; return a function that ends this. */
  on(name, listener) {
    if (!this.#listeners.has(name)) this.#listeners.set(name, []);
    this.#listeners.get(name).push(listener);
    return () => this.off(name, listener);
  }

  /** Call a function at the next event of a name only. */
  once(name, listener) {
    const off = this.on(name, (...values) => {
      off();
      listener(...values);
    });
    return off;
  }

  off(name, listener) {
    const listeners = this.#listeners.get(name) ?? [];
    const index = listeners.indexOf(listener);
    if (index >= 0) listeners.splice(index, 1);
  }

  /** Call the functions of a name in the order in which they were added. */
  emit(name, ...values) {
    for (const listener of [...(this.#listeners.get(name) ?? [])]) listener(...values);
  }
}
