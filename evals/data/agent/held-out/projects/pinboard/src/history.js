/** Undoes changes of a store, and does them again. */
export class History {
  #store;
  #states;
  #position = 0;

  constructor(store) {
    this.#store = store;
    this.#states = [store.snapshot()];
    store.events.on("change", () => this.#record());
  }

  #record() {
    this.#states.length = this.#position + 1;
    this.#states.push(this.#store.snapshot());
    this.#position += 1;
  }

  /** Undo the last change; return whether there was one. */
  undo() {
    return this.#go(this.#position - 1);
  }

  /** Do the last change again that was undone; return whether there was one. */
  redo() {
    return this.#go(this.#position + 1);
  }

  #go(position) {
    const state = this.#states[position];
    if (!state) return false;
    this.#position = position;
    this.#store.restore(state);
    return true;
  }
}
