import { Events } from "./events.js";

/** A board: lists by name, each with cards that have an id, a title, tags and a due day. */
export class Store {
  events = new Events();
  #lists;
  #nextId = 1;

  constructor(names = ["todo", "doing", "done"]) {
    this.#lists = Object.fromEntries(names.map((name) => [name, []]));
  }

  /** Add a card at the end of a list and return its id. A due day is a number, or null. */
  add(list, title, { tags = [], due = null } = {}) {
    const id = this.#nextId++;
    this.#listOf(list).push({ id, title, tags: [...tags], due });
    this.events.emit("change", "add", id);
    return id;
  }

  /** Move a card to a position of a list, by default its end. */
  move(id, list, position = Infinity) {
    const target = this.#listOf(list);
    const [from, index] = this.#find(id);
    const [card] = from.splice(index, 1);
    target.splice(position, 0, card);
    this.events.emit("change", "move", id);
  }

  remove(id) {
    const [from, index] = this.#find(id);
    from.splice(index, 1);
    this.events.emit("change", "remove", id);
  }

  rename(id, title) {
    const [from, index] = this.#find(id);
    from[index].title = title;
    this.events.emit("change", "rename", id);
  }

  tag(id, tag) {
    const [from, index] = this.#find(id);
    if (!from[index].tags.includes(tag)) from[index].tags.push(tag);
    this.events.emit("change", "tag", id);
  }

  /** Return the titles of a list. */
  titles(list) {
    return this.#listOf(list).map((card) => card.title);
  }

  /** Return all cards, each with the name of its list. */
  cards() {
    return Object.entries(this.#lists).flatMap(([list, cards]) =>
      cards.map((card) => ({ ...card, tags: [...card.tags], list })),
    );
  }

  /** Return the state of the board for restore. */
  snapshot() {
    return structuredClone(this.#lists);
  }

  /** Go to a state that snapshot returned. */
  restore(state) {
    this.#lists = structuredClone(state);
    this.events.emit("restore");
  }

  #listOf(name) {
    const list = this.#lists[name];
    if (!list) throw new Error(`no such list: ${name}`);
    return list;
  }

  #find(id) {
    for (const list of Object.values(this.#lists)) {
      const index = list.findIndex((card) => card.id === id);
      if (index >= 0) return [list, index];
    }
    throw new Error(`no such card: ${id}`);
  }
}
