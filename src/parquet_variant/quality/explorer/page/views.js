// What is shown: summary, paths, details of one path, query, row groups, schema, mixed types, versions, comparison.
"use strict";

const humanBytes = (n) => {
  if (n === null || n === undefined) return "–";
  const sign = n < 0 ? "−" : "";
  let size = Math.abs(n);
  for (const unit of ["B", "kB", "MB", "GB", "TB"]) {
    if (size < 1000 || unit === "TB") return sign + (unit === "B" ? Math.round(size) : size.toFixed(1)) + " " + unit;
    size /= 1000;
  }
};
const count = (n) => Math.round(n).toLocaleString("en");
const plural = (n, word) => `${count(n)} ${word}${n === 1 ? "" : "s"}`;
const percent = (share) => (share === null || share === undefined || Number.isNaN(share) ? "–" : share > 0 && share < 0.001 ? "<0.1%" : (100 * share).toFixed(1) + "%");
const quoteShell = (text) => "'" + text.replace(/'/g, "'\\''") + "'";
const quotePython = (text) => JSON.stringify(text);

/** A text with a button that copies it. */
function copyable(label, text) {
  const button = element("button", { type: "button", class: "copy", "aria-label": `copy ${label}` }, "Copy");
  button.addEventListener("click", async () => {
    try { await navigator.clipboard.writeText(text); } catch {
      const area = element("textarea", {}, text);
      document.body.append(area); area.select(); document.execCommand("copy"); area.remove();
    }
    button.textContent = "Copied";
    setTimeout(() => { button.textContent = "Copy"; }, 1200);
  });
  return element("div", { class: "copyable" }, element("div", { class: "copy-head" }, element("span", {}, label), button), element("pre", {}, element("code", {}, text)));
}

function shareBar(node) {
  const bar = element("div", { class: "bar", role: "img",
    "aria-label": `typed ${percent(node.typedShare)}, residual ${percent(node.residualShare)}, missing ${percent(node.missingShare)}`,
    title: `typed ${percent(node.typedShare)} · residual ${percent(node.residualShare)} · missing ${percent(node.missingShare)}${node.exact ? "" : " (from the sample)"}` });
  for (const part of ["typed", "residual", "missing"]) {
    const piece = element("span", { class: part });
    piece.style.width = 100 * node[part + "Share"] + "%";
    bar.append(piece);
  }
  return element("div", { class: "bar-cell" }, bar, element("span", { class: "bar-text" }, isPrimitive(node.kind) || node.kind ? percent(node.typedShare) : "–"));
}

function table(head, rows, numeric = []) {
  const cell = (name, text, at) => { const made = element(name, numeric.includes(at) ? { class: "numeric" } : {}); made.append(text instanceof Node ? text : String(text)); return made; };
  return element("div", { class: "scroll" }, element("table", {}, element("thead", {}, element("tr", {}, ...head.map((text, at) => cell("th", text, at)))),
    element("tbody", {}, ...rows.map((row) => element("tr", {}, ...row.map((text, at) => cell("td", text, at)))))));
}

// ---- summary

function summary(model) {
  const { doc, nodes } = model;
  const typed = nodes.filter((node) => isPrimitive(node.kind)).length;
  const residual = model.footers ? total(model.footers.shapes.flatMap((s) => Object.values(s.residual)).filter((leaf, i, all) => all.indexOf(leaf) === i).map((leaf) => total(model.footers.leaves[leaf].bytes))) : null;
  const facts = doc.kind === "json"
    ? [[humanBytes(doc.bytes), "of JSON"], ["≈ " + count(doc.rows), "rows"], [count(nodes.length - 1), "paths seen"], [currentChoice(model).size, "would be typed"], ["≈ " + humanBytes(predictSize(model, currentChoice(model))), "as Parquet"]]
    : [[humanBytes(doc.bytes), "in files"], [count(doc.rows), "rows"], [count(nodes.length - 1), "paths"], [typed, "typed"], ...(residual === null ? [] : [[percent(residual / Math.max(model.variantBytes, 1)), "of the Variant’s bytes are residual"]])];
  return element("dl", { class: "facts" }, ...facts.map(([value, label]) => element("div", {}, element("dt", {}, label), element("dd", {}, String(value)))));
}

function sentence(model) {
  const { doc } = model;
  const files = model.footers ? `${plural(model.footers.files.length + model.footers.skippedFiles, "file")}, ${plural(model.footers.groups.rows.length, "row group")}, ` : "";
  const skipped = model.footers && model.footers.skippedFiles ? ` Footers of ${plural(model.footers.skippedFiles, "file")} were not read: figures leave them out.` : "";
  const sample = ` Types, examples and estimates come from a sample of ${plural(doc.sample.rows, "row")}.`;
  return { json: "JSON, before any ingest.", parquet: `Parquet: ${files}column ${doc.column}.`, delta: `Delta table: ${files}column ${doc.column}.`, iceberg: `Iceberg table: ${files}column ${doc.column}.`, vortex: `Vortex: column ${doc.column}.` }[doc.kind] + skipped + sample;
}

// ---- one path

function details(model, node, actions) {
  const rows = [["type", node.kind || (model.doc.kind === "json" ? "not written yet" : "not typed: in the residual")], ["in", `${percent(node.share)} of the rows, ${plural(node.count, "value")}`]];
  if (node.column) rows.push(["best type", `${node.column} (takes ${percent(fits(node, node.column))} of the values)`]);
  rows.push(["typed / residual / missing", `${percent(node.typedShare)} / ${percent(node.residualShare)} / ${percent(node.missingShare)}${node.exact ? "" : ", from the sample"}`]);
  if (model.footers && !node.kind) rows.push(["in the residual", "≈ " + humanBytes(residualBytes(model, node))]);
  else if (model.footers) rows.push(["own columns", humanBytes(node.bytes) + (node.children.length ? `; with all below ${humanBytes(node.total)}` : "")]);
  if (node.distinct) rows.push(["distinct", "≈ " + count(node.distinct) + " in the sample"]);
  const range = rangeOf(model, node);
  if (range) rows.push(["range", range]);
  const list = element("dl", { class: "pairs" }, ...rows.flatMap(([name, value]) => [element("dt", {}, name), element("dd", {}, value)]));
  return element("div", {}, element("h2", { class: "path-title" }, node.path), list, ...why(model, node, actions), ...examples(node));
}

function rangeOf(model, node) {
  let low = null, high = null;
  for (const shape of model.footers ? model.footers.shapes : []) {
    const leaf = shape.typed[node.id] === undefined ? null : model.footers.leaves[shape.typed[node.id]];
    if (!leaf || !leaf.lower) continue;
    for (const each of leaf.lower) if (each !== null && (low === null || compareValues(each, low) < 0)) low = each;
    for (const each of leaf.upper) if (each !== null && (high === null || compareValues(each, high) > 0)) high = each;
  }
  if (low === null && node.lower !== null) [low, high] = [node.lower, node.upper];
  return low === null ? null : `${low} … ${high === null ? "?" : high}`;
}

/** Why reading the path costs what it costs, what typing it would cost, and how that is done. */
function why(model, node, actions) {
  const made = [element("h3", {}, "What does reading it cost?")];
  const say = (...text) => made.push(element("p", {}, ...text));
  let reads = null;
  if (model.footers) {
    const plan = planQuery(model, [{ node, type: node.kind || node.column || "variant" }], null);
    reads = plan.bytes;
    say(element("strong", {}, humanBytes(plan.bytes)), ` (${percent(plan.bytes / Math.max(model.variantBytes, 1))} of the Variant’s bytes).`);
    if (!node.kind) {
      let above = node;
      while (!above.kind && above.parent !== null) above = model.nodes[above.parent];
      const beside = model.nodes.filter((each) => !each.kind && each.column && isPrimitive(each.column)).length;
      say(`It is slow because it has no column of its own: its values lie in the residual of ${above.path}, between those of ${plural(Math.max(beside - 1, 0), "other path")}. All of that is read to find them.`);
    } else if (isPrimitive(node.kind) && node.residualShare > 0) say(`${percent(node.residualShare)} of the values do not fit ${node.kind}: they lie in a residual column, which is read too.`);
    else if (isPrimitive(node.kind)) say(`It is typed as ${node.kind}: only its own column is read.`);
  } else say("Nothing is written yet: JSON is read and parsed whole.");
  for (let above = node; above; above = above.parent === null ? null : model.nodes[above.parent]) {
    const isSlow = (line) => line.includes(` in ${above.path} slowly`);
    const slow = ((model.doc.footers && model.doc.footers.slow) || []).find(isSlow);
    const sampled = ((model.doc.sample && model.doc.sample.slow) || []).find(isSlow);
    if (slow) say(`In these files: ${slow}.`);
    if (sampled) say(`In a file of the auto policy: ${sampled}.`);
  }
  if (node.reason) made.push(element("p", { class: "reason" }, `The auto policy ${node.chosen ? (node.kind ? "types it" : "would type it, by this sample") : "leaves it in the residual"}: ${node.reason}.`));
  const paths = typable(node).filter((each) => !isPrimitive(each.kind));
  if (paths.length) {
    const cost = paths.reduce((sum, each) => { const one = costOf(model, each, each.column); return { typed: sum.typed + one.typed, saved: sum.saved + one.saved }; }, { typed: 0, saved: 0 });
    const change = cost.typed - cost.saved;
    made.push(element("h3", {}, "What would typing it cost?"));
    say(paths.length === 1 && paths[0] === node ? `A column of type ${node.column}: ` : `${plural(paths.length, "column")} for what is frequent below it: `,
      element("strong", {}, "≈ " + humanBytes(cost.typed)), `; the residual would lose ≈ ${humanBytes(cost.saved)}. The table would be ≈ ${humanBytes(Math.abs(change))} ${change < 0 ? "smaller" : "larger"} (${percent(Math.abs(change) / Math.max(model.variantBytes || predictSize(model, currentChoice(model)), 1))}).`);
    if (reads) say(`Reading it would then take ≈ ${humanBytes(cost.typed)} instead of ${humanBytes(reads)}` + (cost.typed > 0 && reads / cost.typed > 1.2 ? `: ${(reads / cost.typed).toFixed(reads / cost.typed > 10 ? 0 : 1)} times less.` : "."));
    made.push(element("h3", {}, "How?"));
    const choice = currentChoice(model);
    for (const each of paths) choice.set(each.id, each.column);
    made.push(copyable("command", schemaCommand(model, choice)));
    const button = element("button", { type: "button", class: "primary" }, "Add to the schema");
    button.addEventListener("click", () => actions.type(paths));
    made.push(button);
  }
  return made;
}

function examples(node) {
  const kinds = Object.keys(node.examples || {});
  if (!kinds.length) return [];
  const rows = kinds.flatMap((kind) => node.examples[kind].map(([row, text]) => [kind, element("code", {}, text), count(row)]));
  return [element("h3", {}, "Examples"), table(["type", "value", "row of the sample"], rows, [2])];
}

function schemaCommand(model, choice) {
  const ddl = renderDdl(model, choice), source = quoteShell(model.doc.source);
  if (model.doc.kind === "json") return `variant ingest ${source} DEST --schema ${quoteShell(ddl)}`;
  if (model.doc.kind === "vortex") return `# Vortex files are written anew:\npv.write("new.vortex", pv.open(${quotePython(model.doc.source)}).read(), schema=${quotePython(ddl)})`;
  const isTable = model.doc.kind === "delta" || model.doc.kind === "iceberg";
  return `variant ${isTable ? "optimize " + source : "rewrite " + source + " DEST"}${catalogOption(model)} --schema ${quoteShell(ddl)}`;
}

const catalogOption = (model) => (model.doc.catalog ? ` --catalog ${quoteShell(model.doc.catalog)}` : "");

// ---- query

function queryTexts(model, selected, filterText) {
  const source = model.doc.source, filter = filterText.trim();
  const columns = selected.map((column) => ({ ...column }));
  const taken = new Set(columns.map((column) => column.alias.toLowerCase()));
  const columnOf = (name) => {
    const known = columns.find((column) => column.alias === name || column.node.path === name);
    if (known) return known;
    const node = model.byPath.get(name);
    if (!node) throw new Error(`unknown path or name ${name}: tick a path, or write $.a.b`);
    const column = { node, type: typeOf(node), alias: aliasOf(model, node, taken) };
    columns.push(column);
    return column;
  };
  const sqlColumn = (column) => `${sqlName(model.doc.column)}${sqlPath(model, column.node)}::${column.type}`;
  // Both forms name every column of the filter, so the filter comes before the list of columns.
  const where = mapColumns(filter, (name) => sqlName(columnOf(name).alias)), sqlWhere = mapColumns(filter, (name) => sqlColumn(columnOf(name)));
  const catalog = model.doc.catalog ? `, catalog=${quotePython(model.doc.catalog)}` : "";
  const python = `import parquet_variant as pv\n\npv.open(${quotePython(source)}${catalog}).scan(\n    {${columns.map((column) => `${quotePython(column.alias)}: (${quotePython(column.node.path)}, ${quotePython(column.type)})`).join(", ")}},\n${filter ? `    where=${quotePython(where)},\n` : ""}).to_arrow()`;
  const cli = `variant query ${quoteShell(source)}${catalogOption(model)} ${columns.map((column) => `--select ${quoteShell(`${column.alias}=${column.node.path}:${column.type}`)}`).join(" ")}${filter ? ` --where ${quoteShell(where)}` : ""}`;
  const sql = `SELECT ${columns.map((column) => `${sqlColumn(column)} AS ${sqlName(column.alias)}`).join(",\n       ")}\nFROM t${filter ? `\nWHERE ${sqlWhere}` : ""}`;
  return { python, cli, sql: `variant query ${quoteShell(source)}${catalogOption(model)} ${quoteShell(sql)}` };
}

const sqlName = (name) => '"' + name.replace(/"/g, '""') + '"';

/** A path as SQL writes it after the Variant column: every key in brackets, so that any key works. */
function sqlPath(model, node) {
  const steps = [];
  for (let at = node; at.parent !== null; at = model.nodes[at.parent]) steps.unshift(at.key === null ? "[*]" : `['${at.key.replace(/\\/g, "\\\\").replace(/'/g, "''")}']`);
  return steps.length ? ":" + steps.join("") : "";
}

const typeOf = (node) => (isPrimitive(node.kind) ? node.kind : isPrimitive(node.column) ? node.column : "variant");

/** Draw files as rows and row groups as cells: what is read is filled, what is skipped is not. */
function drawMap(model, canvas, plan) {
  const footers = model.footers, files = footers.files.length, groupsOf = footers.files.map(() => []);
  footers.groups.file.forEach((file, group) => groupsOf[file].push(group));
  const wide = Math.max(canvas.parentElement.clientWidth - 2, 200), high = Math.max(4, Math.min(22, Math.floor(600 / files)));
  const scale = window.devicePixelRatio || 1, context = canvas.getContext("2d");
  canvas.width = wide * scale; canvas.height = files * high * scale;
  canvas.style.width = wide + "px"; canvas.style.height = files * high + "px";
  context.scale(scale, scale);
  const style = getComputedStyle(document.documentElement), colour = (name) => style.getPropertyValue(name).trim();
  const read = new Set(plan ? plan.groups : footers.groups.rows.map((_, group) => group));
  const most = Math.max(...groupsOf.map((groups) => total(groups.map((group) => footers.groups.rows[group]))), 1);
  const cells = [];
  groupsOf.forEach((groups, file) => {
    let left = 0;
    for (const group of groups) {
      const width = wide * footers.groups.rows[group] / most, gap = width > 4 ? 1 : 0;
      context.fillStyle = read.has(group) ? colour("--typed") : colour("--missing");
      context.fillRect(left, file * high, Math.max(width - gap, 0.5), Math.max(high - 1, 1));
      cells.push({ file, group, left, width });
      left += width;
    }
  });
  canvas.cellAt = (x, y) => { const file = Math.floor(y / high); return cells.find((each) => each.file === file && x >= each.left && x < each.left + each.width); };
  canvas.setAttribute("aria-label", `${plural(read.size, "row group")} of ${count(footers.groups.rows.length)} read`);
}

// ---- mixed, versions, comparison

function mixedView(model, actions) {
  const mixed = model.nodes.filter((node) => families(node).length > 1).sort((a, b) => b.count - a.count).slice(0, 200);
  if (!mixed.length) return element("p", {}, "Every path has values of one type, as far as the sample shows.");
  const rows = mixed.map((node) => {
    const link = element("button", { type: "button", class: "link" }, node.path);
    link.addEventListener("click", () => actions.show(node));
    const all = Object.values(node.kinds).reduce((a, b) => a + b, 0);
    const shown = families(node).map(([family, kinds]) => {
      const n = kinds.reduce((sum, kind) => sum + node.kinds[kind], 0);
      const example = kinds.flatMap((kind) => (node.examples || {})[kind] || [])[0];
      return element("div", {}, `${percent(n / all)} ${family} `, example ? element("code", {}, example[1]) : "", example ? ` (row ${count(example[0])})` : "");
    });
    return [link, node.kind || "–", element("div", {}, ...shown)];
  });
  return element("div", {}, element("p", {}, "Paths with values of more than one type. What does not fit the typed column is kept in a residual beside it."), table(["path", "typed as", "values"], rows));
}

/** Types that one typed column cannot hold together. */
function families(node) {
  const family = (kind) => (/^(int|decimal)/.test(kind) ? "number" : kind);
  const found = new Map();
  for (const kind of Object.keys(node.kinds)) if (kind !== "null") found.set(family(kind), [...(found.get(family(kind)) || []), kind]);
  return [...found];
}

function versionsView(model) {
  const rows = model.doc.versions.map((each) => [each.version, each.time, each.operation || "–", each.engine || "–", Object.entries(each.metrics).map(([name, value]) => `${name} ${value}`).join(", ")]);
  return table(["version", "time (UTC)", "operation", "by", "figures"], rows, [0]);
}

function compareView(model, before, actions) {
  const paths = [...new Set([...model.byPath.keys(), ...before.byPath.keys()])];
  const changes = paths.map((path) => ({ path, now: model.byPath.get(path), was: before.byPath.get(path) }))
    .filter(({ now, was }) => !now || !was || now.kind !== was.kind || now.bytes !== was.bytes)
    .sort((a, b) => Math.abs((b.now?.bytes || 0) - (b.was?.bytes || 0)) - Math.abs((a.now?.bytes || 0) - (a.was?.bytes || 0))).slice(0, 1000);
  const rows = changes.map(({ path, now, was }) => {
    const link = element("button", { type: "button", class: "link" }, path);
    if (now) link.addEventListener("click", () => actions.show(now));
    return [link, was ? was.kind || "residual" : "–", now ? now.kind || "residual" : "–", humanBytes(was?.bytes || 0), humanBytes(now?.bytes || 0), humanBytes((now?.bytes || 0) - (was?.bytes || 0))];
  });
  return element("div", {}, element("p", {}, `Before: ${before.doc.source}, ${humanBytes(before.doc.bytes)}, ${plural(before.doc.rows, "row")}. Now: ${model.doc.source}, ${humanBytes(model.doc.bytes)}, ${plural(model.doc.rows, "row")}.`),
    table(["path", "type before", "type now", "bytes before", "bytes now", "change"], rows, [3, 4, 5]));
}
