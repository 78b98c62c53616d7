// The page: makes the tabs, keeps what is ticked and chosen.
"use strict";

class Page {
  constructor(doc) {
    this.model = buildModel(doc);
    this.before = doc.before ? buildModel(doc.before) : null;
    this.ticked = new Set();
    this.choice = currentChoice(this.model);
    this.filter = "";
    this.actions = { show: (node) => { this.tab("paths"); this.grid.reveal(node); this.select(node, true); }, type: (nodes) => { for (const node of nodes) this.choose(node, node.column); this.tab("schema"); } };
    document.getElementById("source").textContent = doc.source;
    document.getElementById("sentence").textContent = sentence(this.model);
    document.getElementById("summary").append(summary(this.model));
    this.makeTabs();
    this.makePaths();
    this.makeQuery();
    this.makeSchema();
    this.panel("mixed").append(mixedView(this.model, this.actions));
    if (doc.versions.length) this.panel("versions").append(versionsView(this.model));
    if (doc.live) new Live(this.panel("rows"), doc);
    if (this.before) this.panel("compare").append(compareView(this.model, this.before, this.actions));
    this.tab((location.hash || "#paths").slice(1));
    document.body.dataset.ready = "yes";
  }

  panel(name) { return document.getElementById("panel-" + name); }

  // ---- tabs

  makeTabs() {
    const doc = this.model.doc;
    this.names = [["paths", "Paths"], ...(this.model.footers ? [["query", "Query and row groups"]] : []), ["schema", "Schema"], ["mixed", "Mixed types"], ...(doc.versions.length ? [["versions", "Versions"]] : []), ...(doc.before ? [["compare", "Before and after"]] : []), ...(doc.live ? [["rows", "Rows and SQL"]] : [])];
    const bar = document.getElementById("tabs");
    for (const [name, label] of this.names) {
      const button = element("button", { type: "button", role: "tab", id: "tab-" + name, "aria-controls": "panel-" + name, tabindex: "-1" }, label);
      button.addEventListener("click", () => this.tab(name));
      bar.append(button);
    }
    bar.addEventListener("keydown", (event) => {
      const at = this.names.findIndex(([name]) => name === this.current), move = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
      if (!move) return;
      const [name] = this.names[(at + move + this.names.length) % this.names.length];
      this.tab(name);
      document.getElementById("tab-" + name).focus();
    });
  }

  tab(name) {
    if (!this.names.some(([each]) => each === name)) name = "paths";
    this.current = name;
    for (const panel of document.querySelectorAll("[role=tabpanel]")) panel.hidden = panel.id !== "panel-" + name;
    for (const [each] of this.names) {
      const button = document.getElementById("tab-" + each);
      button.setAttribute("aria-selected", String(each === name));
      button.tabIndex = each === name ? 0 : -1;
    }
    if (name === "query") this.runPlan();
    if (name === "schema") this.drawSchema();
    if (name === "paths") this.grid.draw();
  }

  // ---- paths

  makePaths() {
    const bytes = (node) => (this.model.footers ? node.total : node.encoded);
    const bytesText = (node) => (this.model.footers && node.kind ? humanBytes(bytes(node)) : this.model.footers ? "≈ " + humanBytes(residualBytes(this.model, node)) : humanBytes(node.encoded));
    const columns = [
      { id: "path", label: "path", value: (node) => node.id, cell: () => "" },
      { id: "type", label: "type", value: (node) => node.kind || "", cell: (node) => element("span", { class: node.kind ? "" : "faint" }, node.kind || (node.column ? `(${node.column})` : "–")) },
      { id: "share", label: "typed", value: (node) => node.typedShare, cell: shareBar },
      { id: "rows", label: "in rows", numeric: true, value: (node) => node.share, cell: (node) => percent(node.share) },
      { id: "bytes", label: this.model.footers ? "bytes" : "bytes, encoded", numeric: true, value: (node) => (node.kind || !this.model.footers ? bytes(node) : residualBytes(this.model, node)), cell: bytesText },
      { id: "distinct", label: "distinct", numeric: true, value: (node) => node.distinct, cell: (node) => (node.distinct ? "≈ " + count(node.distinct) : "") },
      { id: "example", label: "example", value: (node) => exampleOf(node), cell: (node) => element("code", {}, exampleOf(node)) },
    ];
    this.grid = new TreeGrid(document.getElementById("grid"), this.model, { columns, ticked: this.ticked, label: "Paths",
      onSelect: (node, focus) => this.select(node, focus), onTick: () => this.drawTicked() });
    const search = document.getElementById("search");
    search.addEventListener("input", () => { this.grid.search = search.value; this.grid.at = 0; this.grid.body.scrollTop = 0; this.grid.refresh(); if (this.grid.rows.length) this.select(this.grid.rows[0]); document.getElementById("found").textContent = search.value ? plural(this.grid.rows.length, "path") : ""; });
    search.addEventListener("keydown", (event) => { if (event.key === "ArrowDown") { this.grid.body.focus(); event.preventDefault(); } });
    document.addEventListener("keydown", (event) => { if (event.key === "/" && !/^(INPUT|TEXTAREA|SELECT)$/.test(document.activeElement.tagName)) { this.tab("paths"); search.focus(); event.preventDefault(); } });
    this.select(this.model.root);
  }

  select(node, focus) {
    const host = document.getElementById("details");
    host.replaceChildren(details(this.model, node, this.actions));
    if (focus) host.focus();
  }

  drawTicked() {
    document.getElementById("ticked").textContent = this.ticked.size ? `${plural(this.ticked.size, "path")} ticked` : "";
    if (this.current === "query") this.runPlan();
  }

  selected() {
    const taken = new Set();
    return [...this.ticked].sort((a, b) => a - b).map((id) => { const node = this.model.nodes[id]; return { node, type: typeOf(node), alias: aliasOf(this.model, node, taken) }; });
  }

  // ---- query

  makeQuery() {
    if (!this.model.footers) return;
    const input = document.getElementById("filter");
    input.addEventListener("input", () => { this.filter = input.value; this.runPlan(); });
    const canvas = document.getElementById("map"), tip = document.getElementById("map-tip");
    canvas.addEventListener("mousemove", (event) => {
      const cell = canvas.cellAt && canvas.cellAt(event.offsetX, event.offsetY), footers = this.model.footers;
      tip.textContent = cell ? `${footers.files[cell.file].name}: row group ${cell.group - footers.groups.file.indexOf(cell.file)}, ${plural(footers.groups.rows[cell.group], "row")}${this.plan ? ", reads " + humanBytes(this.plan.bytesByGroup[cell.group]) : ""}` : "";
    });
    new ResizeObserver(() => { if (this.current === "query") drawMap(this.model, canvas, this.plan); }).observe(canvas.parentElement);
  }

  runPlan() {
    const selected = this.selected(), problem = document.getElementById("filter-error"), out = document.getElementById("plan"), texts = document.getElementById("texts");
    const shown = document.getElementById("chosen");
    shown.replaceChildren(...(selected.length ? selected.map(({ node, type, alias }) => element("li", {}, element("code", {}, `${alias} = ${node.path}: ${type}`))) : [element("li", { class: "faint" }, "No path is ticked: tick some under Paths, or name them in the filter as $.a.b")]));
    problem.textContent = "";
    let filter = null;
    try { filter = this.filter.trim() ? parseFilter(this.filter) : null; this.plan = planQuery(this.model, selected, filter); }
    catch (error) { problem.textContent = error.message; out.replaceChildren(); texts.replaceChildren(); return; }
    const plan = this.plan, footers = this.model.footers;
    const all = this.model.variantBytes + footers.otherBytes;
    out.replaceChildren(element("dl", { class: "facts" }, ...[
      [humanBytes(plan.bytes), `read of ${humanBytes(all)} (${percent(plan.bytes / Math.max(all, 1))})`], [`${count(plan.groups.length)} of ${count(footers.groups.rows.length)}`, "row groups"],
      [`${count(plan.files)} of ${count(footers.files.length)}`, "files"], [`${count(plan.rows)} of ${count(total(footers.groups.rows))}`, "rows"], [`${count(plan.columns.length)} of ${count(footers.leaves.length)}`, "columns of the Variant"],
    ].map(([value, label]) => element("div", {}, element("dt", {}, label), element("dd", {}, value)))),
      ...(plan.residuals.length ? [element("p", { class: "reason" }, "Residuals are read too: " + plan.residuals.slice(0, 5).map((leaf) => footers.leaves[leaf].name).join(", ") + (plan.residuals.length > 5 ? ", …" : ""))] : []));
    drawMap(this.model, document.getElementById("map"), plan);
    texts.replaceChildren();
    if (selected.length || filter) try {
      const made = queryTexts(this.model, selected, this.filter);
      texts.append(copyable("Python", made.python), copyable("SQL", made.sql), copyable("command line", made.cli));
    } catch (error) { problem.textContent = error.message; }
  }

  // ---- schema

  choose(node, type) {
    for (const id of [...this.choice.keys()]) {
      // A column of a type has nothing below it, and a path above it is a group.
      for (let at = this.model.nodes[id]; type && at.parent !== null;) { at = this.model.nodes[at.parent]; if (at === node) this.choice.delete(id); }
    }
    for (let at = node; type && at.parent !== null;) { at = this.model.nodes[at.parent]; this.choice.delete(at.id); }
    if (type) this.choice.set(node.id, type);
    else this.choice.delete(node.id);
  }

  makeSchema() {
    const search = document.getElementById("schema-search");
    search.addEventListener("input", () => this.drawSchema());
    document.getElementById("schema-reset").addEventListener("click", () => { this.choice = currentChoice(this.model); this.drawSchema(); });
  }

  drawSchema() {
    const model = this.model, now = currentChoice(model), wanted = document.getElementById("schema-search").value.trim().toLowerCase();
    const before = predictSize(model, now), after = predictSize(model, this.choice);
    const facts = [["≈ " + humanBytes(after), `predicted, of the Variant; now ${model.footers ? "" : "≈ "}${humanBytes(before)} (${after >= before ? "+" : "−"}${percent(Math.abs(after - before) / Math.max(before, 1))})`], [count(this.choice.size), `typed columns; now ${count(now.size)}`]];
    document.getElementById("schema-facts").replaceChildren(element("dl", { class: "facts" }, ...facts.map(([value, label]) => element("div", {}, element("dt", {}, label), element("dd", {}, value)))));
    const leaves = model.nodes.filter((node) => (this.choice.has(node.id) || now.has(node.id) || (node.column && isPrimitive(node.column))) && (!wanted || node.path.toLowerCase().includes(wanted)));
    const weight = (node) => (this.choice.has(node.id) !== now.has(node.id) ? 1e18 : 0) + node.encoded + node.bytes;
    const rows = leaves.sort((a, b) => weight(b) - weight(a)).slice(0, 300).map((node) => this.schemaRow(node, now));
    const more = leaves.length > 300 ? [element("p", { class: "faint" }, `${count(leaves.length - 300)} more: search for them.`)] : [];
    document.getElementById("schema-rows").replaceChildren(table(["typed", "path", "type", "in rows", "column", "leaves the residual", "reading it"], rows, [3, 4, 5, 6]), ...more);
    document.getElementById("schema-texts").replaceChildren(copyable("DDL", renderDdl(model, this.choice)), copyable("command", schemaCommand(model, this.choice)));
  }

  schemaRow(node, now) {
    const box = element("input", { type: "checkbox", "aria-label": "type " + node.path });
    box.checked = this.choice.has(node.id);
    box.addEventListener("change", () => { this.choose(node, box.checked ? now.get(node.id) || node.column || "variant" : null); this.drawSchema(); });
    const current = this.choice.get(node.id) || now.get(node.id) || node.column || "variant";
    const types = [...new Set([current, node.column, now.get(node.id), "string", "bigint", "double", "boolean", "date", "timestamp", "timestamp_ntz", "binary", "uuid", "variant"].filter((each) => each && each !== "object" && each !== "array"))];
    const select = element("select", { "aria-label": "type of " + node.path }, ...types.map((type) => element("option", { value: type }, type)));
    select.value = current;
    select.addEventListener("change", () => { this.choose(node, select.value); this.drawSchema(); });
    const cost = costOf(this.model, node, current), typed = this.choice.has(node.id), unchanged = now.get(node.id) === current && this.model.footers;
    const name = element("button", { type: "button", class: "link" }, node.path);
    name.addEventListener("click", () => this.actions.show(node));
    const changed = now.get(node.id) !== this.choice.get(node.id);
    return [box, changed ? element("strong", {}, name) : name, select, percent(node.share), unchanged ? humanBytes(node.bytes) : "≈ " + humanBytes(cost.typed), "≈ " + humanBytes(cost.saved), typed ? (unchanged ? humanBytes(node.bytes) : "≈ " + humanBytes(cost.typed)) : this.model.footers ? humanBytes(planQuery(this.model, [{ node, type: typeOf(node) }], null).bytes) : "all"];
  }
}

function exampleOf(node) {
  for (const kind in node.examples || {}) if (kind !== "object" && kind !== "array" && node.examples[kind].length) return node.examples[kind][0][1];
  return "";
}

start((doc) => { window.explorer = new Page(doc); });
