// A tree of paths as a grid: only the rows in sight are in the page, so that 10,000 paths stay quick.
// Keys as in ARIA's treegrid pattern: arrows move, open and close; Home, End, Page; Space ticks; Enter shows details.
"use strict";

class TreeGrid {
  /** columns: [{ id, label, value(node), cell(node) → string or Node, numeric }]; tickable(node) → boolean. */
  constructor(host, model, { columns, onSelect, onTick, ticked, label }) {
    Object.assign(this, { host, model, columns, onSelect, onTick, ticked });
    this.open = new Set(model.nodes.filter((node) => node.depth < 2 && model.nodes.length < 2000 || node.depth < 1).map((node) => node.id));
    this.sort = { id: "path", down: false };
    this.search = "";
    this.at = 0;
    this.head = element("div", { class: "grid-head", role: "row" });
    this.body = element("div", { class: "grid-body", role: "treegrid", tabindex: "0", "aria-label": label, "aria-multiselectable": "true" });
    this.space = element("div", { class: "grid-space" });
    this.body.append(this.space);
    host.classList.add("grid");
    host.append(this.head, this.body);
    this.body.addEventListener("scroll", () => this.draw());
    this.body.addEventListener("keydown", (event) => this.key(event));
    new ResizeObserver(() => this.draw()).observe(this.body);
    this.drawHead();
    this.refresh();
  }

  get rowHeight() {
    return matchMedia("(pointer: coarse)").matches ? 44 : 30;
  }

  drawHead() {
    this.head.replaceChildren(...this.columns.map((column) => {
      const on = this.sort.id === column.id;
      const button = element("button", { class: "sort", type: "button" }, column.label + (on ? (this.sort.down ? " ↓" : " ↑") : ""));
      button.addEventListener("click", () => {
        this.sort = { id: column.id, down: on ? !this.sort.down : column.id !== "path" };
        this.drawHead();
        this.refresh();
      });
      return element("div", { class: "cell " + column.id + (column.numeric ? " numeric" : ""), role: "columnheader", "aria-sort": on ? (this.sort.down ? "descending" : "ascending") : "none" }, button);
    }));
  }

  /** The rows in their order: the tree as it is open, or the matches of a search. */
  refresh() {
    const column = this.columns.find((each) => each.id === this.sort.id);
    const order = (nodes) => {
      if (this.sort.id === "path") return this.sort.down ? [...nodes].reverse() : [...nodes];
      const values = new Map(nodes.map((node) => [node, column.value(node)]));
      const sign = this.sort.down ? -1 : 1;
      return [...nodes].sort((a, b) => sign * compareValues(values.get(a), values.get(b)));
    };
    const wanted = this.search.trim().toLowerCase();
    if (wanted) {
      this.rows = order(this.model.nodes.filter((node) => node.path.toLowerCase().includes(wanted)));
    } else {
      this.rows = [];
      const stack = [this.model.root];
      while (stack.length) {
        const node = stack.pop();
        this.rows.push(node);
        if (this.open.has(node.id)) stack.push(...order(node.children).reverse());
      }
    }
    this.at = Math.min(this.at, Math.max(this.rows.length - 1, 0));
    this.space.style.height = this.rows.length * this.rowHeight + "px";
    this.body.setAttribute("aria-rowcount", this.rows.length);
    this.draw();
  }

  draw() {
    const height = this.rowHeight, first = Math.max(0, Math.floor(this.body.scrollTop / height) - 5);
    const last = Math.min(this.rows.length, first + Math.ceil(this.body.clientHeight / height) + 10);
    this.space.replaceChildren(...this.rows.slice(first, last).map((node, at) => this.row(node, first + at, height)));
    if (this.rows[this.at]) this.body.setAttribute("aria-activedescendant", "row-" + this.rows[this.at].id);
  }

  row(node, number, height) {
    const row = element("div", { class: "row" + (number === this.at ? " current" : ""), role: "row", id: "row-" + node.id,
      "aria-level": node.depth + 1, "aria-rowindex": number + 1, "aria-selected": String(this.ticked.has(node.id)) });
    if (node.children.length) row.setAttribute("aria-expanded", String(this.open.has(node.id)));
    row.style.top = number * height + "px";
    row.style.height = height + "px";
    for (const column of this.columns) {
      const cell = element("div", { class: "cell " + column.id + (column.numeric ? " numeric" : ""), role: "gridcell" });
      if (column.id === "path") cell.append(...this.name(node));
      else cell.append(column.cell(node));
      row.append(cell);
    }
    row.addEventListener("click", () => { this.at = number; this.onSelect(node); this.draw(); });
    return row;
  }

  name(node) {
    const box = element("input", { type: "checkbox", tabindex: "-1", "aria-label": "use " + node.path });
    box.checked = this.ticked.has(node.id);
    box.addEventListener("click", (event) => { event.stopPropagation(); this.tick(node); });
    const searching = Boolean(this.search.trim());
    const indent = element("span", { class: "indent" });
    indent.style.width = (searching ? 0 : node.depth * 14) + "px";
    const twist = element("span", { class: "twist", "aria-hidden": "true" }, !searching && node.children.length ? (this.open.has(node.id) ? "▾" : "▸") : "");
    twist.addEventListener("click", (event) => { event.stopPropagation(); this.toggle(node); });
    const text = element("span", { class: "name", title: node.path }, searching ? node.path : node.name);
    return [box, indent, twist, text];
  }

  toggle(node, open = !this.open.has(node.id)) {
    if (open) this.open.add(node.id);
    else this.open.delete(node.id);
    this.refresh();
  }

  tick(node) {
    if (this.ticked.has(node.id)) this.ticked.delete(node.id);
    else this.ticked.add(node.id);
    this.onTick(node);
    this.draw();
  }

  /** Open what is above a node, and go there. */
  reveal(node) {
    for (let at = node; at.parent !== null; ) { at = this.model.nodes[at.parent]; this.open.add(at.id); }
    this.refresh();
    this.go(this.rows.indexOf(node));
  }

  go(number) {
    this.at = Math.max(0, Math.min(number, this.rows.length - 1));
    const height = this.rowHeight, top = this.at * height;
    if (top < this.body.scrollTop) this.body.scrollTop = top;
    else if (top + height > this.body.scrollTop + this.body.clientHeight) this.body.scrollTop = top + height - this.body.clientHeight;
    this.draw();
    if (this.rows[this.at]) this.onSelect(this.rows[this.at]);
  }

  key(event) {
    const node = this.rows[this.at], page = Math.max(1, Math.floor(this.body.clientHeight / this.rowHeight) - 1);
    const moves = { ArrowDown: 1, ArrowUp: -1, PageDown: page, PageUp: -page, Home: -this.rows.length, End: this.rows.length };
    if (event.key in moves) this.go(this.at + moves[event.key]);
    else if (event.key === "ArrowRight" && node.children.length && !this.open.has(node.id)) this.toggle(node, true);
    else if (event.key === "ArrowRight") this.go(this.at + 1);
    else if (event.key === "ArrowLeft" && this.open.has(node.id) && node.children.length && !this.search) this.toggle(node, false);
    else if (event.key === "ArrowLeft" && node.parent !== null) this.go(Math.max(0, this.rows.indexOf(this.model.nodes[node.parent])));
    else if (event.key === " ") this.tick(node);
    else if (event.key === "Enter") this.onSelect(node, true);
    else return;
    event.preventDefault();
  }
}

function compareValues(a, b) {
  if (a === b) return 0;
  if (a === null || a === undefined) return -1;
  if (b === null || b === undefined) return 1;
  return typeof a === "number" && typeof b === "number" ? a - b : String(a) < String(b) ? -1 : 1;
}

/** An element with attributes and children; text is always text, never markup. */
function element(name, attributes = {}, ...children) {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) if (value !== null && value !== undefined && value !== false) made.setAttribute(key, value);
  made.append(...children.filter((child) => child !== null && child !== undefined));
  return made;
}
