// The figures behind the page: paths as a tree, what a query reads and skips, what another schema would cost.
// Pure functions over the document of report.py; the rules are those of parquet/scanning and query/prune.py.
"use strict";

const ALL_NULL = "1", VARIANT_NULLS = "2", NO_NULLS = "3";

/** Paths as nodes with their children, and the tables of the footers beside them. */
function buildModel(doc) {
  const table = doc.paths;
  const nodes = table.key.map((key, id) => {
    const node = { id, children: [] };
    for (const name in table) node[name] = table[name][id];
    node.parent = table.parent[id] < 0 ? null : table.parent[id];
    return node;
  });
  for (const node of nodes) {
    const above = node.parent === null ? null : nodes[node.parent];
    node.depth = above ? above.depth + 1 : 0;
    node.path = above ? above.path + step(node.key) : "$";
    node.name = node.key === null ? "[*]" : node.key;
    node.repeated = Boolean(above && (above.repeated || node.key === null));
    if (above) above.children.push(node);
  }
  const model = { doc, nodes, root: nodes[0], footers: doc.footers || null, byPath: new Map(nodes.map((n) => [n.path, n])) };
  for (const node of nodes) Object.assign(node, shares(model, node));
  for (let i = nodes.length - 1; i >= 0; i--) {
    nodes[i].total = nodes[i].bytes + nodes[i].children.reduce((sum, child) => sum + child.total, 0);
  }
  model.variantBytes = model.footers ? model.footers.leaves.reduce((sum, leaf) => sum + total(leaf.bytes), 0) : null;
  return model;
}

function total(numbers) {
  let sum = 0;
  for (const each of numbers) sum += each;
  return sum;
}

const ESCAPES = { "'": "\\'", "\\": "\\\\", "\b": "\\b", "\t": "\\t", "\n": "\\n", "\f": "\\f", "\r": "\\r" };

/** One step of a path as path expressions write it, with the escapes of VariantPath in Python. */
function step(key) {
  if (key === null) return "[*]";
  if (/^[A-Za-z_][A-Za-z0-9_]*$/.test(key)) return "." + key;
  const escape = (c) => ESCAPES[c] || "\\u" + c.charCodeAt(0).toString(16).padStart(4, "0");
  return "['" + key.replace(/[\u0000-\u001f'\\]/g, escape) + "']";
}

function isPrimitive(kind) {
  return Boolean(kind) && kind !== "object" && kind !== "array" && kind !== "variant";
}

/** Bytes of the path's own columns, and which part of the places is typed, residual, missing. */
function shares(model, node) {
  const above = node.parent === null ? null : model.nodes[node.parent];
  const places = !above ? model.doc.rows : node.key === null ? node.count : Math.max(above.kinds.object || 0, node.count);
  let bytes = 0, entries = 0, typed = 0, residual = 0, known = false;
  for (const shape of model.footers ? model.footers.shapes : []) {
    const leaves = [shape.typed[node.id], shape.residual[node.id]];
    leaves.forEach((number, at) => {
      if (number === undefined || (at === 0 && seen(shape, model, number, node, "typed"))) return;
      const leaf = model.footers.leaves[number];
      if (at === 1 && seen(shape, model, number, node, "residual")) return;
      bytes += total(leaf.bytes);
      entries = Math.max(entries, leaf.values);
      if (leaf.nulls === null) return;
      known = true;
      if (at === 0) typed += leaf.values - leaf.nulls;
      else residual += leaf.values - leaf.nulls;
    });
  }
  if (known && isPrimitive(node.kind) && entries) {
    return { bytes, typedShare: typed / entries, residualShare: residual / entries,
      missingShare: Math.max(0, 1 - (typed + residual) / entries), exact: true };
  }
  const there = places ? Math.min(1, node.count / places) : 0;
  const inGroup = node.count && (node.kind === "object" || node.kind === "array") ? (node.kinds[node.kind] || 0) / node.count : 0;
  return { bytes, typedShare: there * inGroup, residualShare: there * (1 - inGroup), missingShare: 1 - there, exact: false };
}

/** Whether an earlier shape counted this leaf for the node already. */
function seen(shape, model, number, node, role) {
  for (const other of model.footers.shapes) {
    if (other === shape) return false;
    if (other[role][node.id] === number) return true;
  }
  return false;
}

/** The leaf columns that can hold an answer in files of a shape; columns_of_path in Python. */
function columnsOfPath(model, shape, node, scalar) {
  if (shape.layout !== "final" && shape.layout !== "unshredded") return { whole: true, residuals: [], typed: allLeaves(model, shape) };
  if (!shape.groupSet) shape.groupSet = new Set(shape.groups);
  const steps = [];
  for (let at = node; at; at = at.parent === null ? null : model.nodes[at.parent]) steps.unshift(at);
  let last = steps[0], repeated = false;
  for (const each of steps.slice(1)) {
    if (!shape.groupSet.has(each.id)) return { reached: false, repeated, residuals: own(shape.residual, last), typed: [], metadata: shape.metadata };
    repeated = repeated || each.key === null;
    last = each;
  }
  const residuals = own(shape.residual, node), typed = own(shape.typed, node);
  if (typed.length || !node.children.some((child) => shape.groupSet.has(child.id))) {
    return { reached: true, primitive: typed[0], repeated, residuals, typed, metadata: shape.metadata };
  }
  const below = [...residuals];
  const stack = [...node.children];
  while (stack.length) {
    const each = stack.pop();
    if (!shape.groupSet.has(each.id)) continue;
    below.push(...own(shape.residual, each), ...own(shape.typed, each));
    stack.push(...each.children);
  }
  return { reached: true, whole: true, repeated, residuals: below, typed: [], metadata: shape.metadata };
}

function own(table, node) {
  return table[node.id] === undefined ? [] : [table[node.id]];
}

function allLeaves(model, shape) {
  const leaves = new Set([...Object.values(shape.typed), ...Object.values(shape.residual)]);
  if (shape.metadata !== null) leaves.add(shape.metadata);
  return [...leaves];
}

/** The leaves to read in a row group; null if every row is null there. PathColumns.needed in Python. */
function needed(model, columns, scalar, group) {
  const metadata = columns.metadata === null || columns.metadata === undefined ? [] : [columns.metadata];
  if (columns.whole) return [...columns.residuals, ...columns.typed, ...metadata];
  const state = (leaf) => model.footers.leaves[leaf].states[group];
  const kept = columns.residuals.filter((leaf) => state(leaf) !== ALL_NULL && !(scalar && state(leaf) === VARIANT_NULLS));
  let typed = columns.typed, residuals = kept;
  if (columns.repeated) residuals = typed.length ? kept : columns.residuals;
  else if (columns.primitive !== undefined && state(columns.primitive) === ALL_NULL) typed = [];
  if (!residuals.length && !typed.length) return null;
  return [...residuals, ...typed, ...(residuals.length || !scalar ? metadata : [])];
}

const ONLY_NULL = { mayBeNull: true, mayBeValue: false }, UNKNOWN = { mayBeNull: true, mayBeValue: true };

/** What is known of a path in a row group; path_facts in Python. */
function factsOf(model, columns, node, group) {
  if (columns.repeated || columns.whole) return needed(model, columns, true, group) === null ? ONLY_NULL : UNKNOWN;
  const leaves = model.footers.leaves;
  const empty = (leaf) => leaves[leaf].states[group] === ALL_NULL || leaves[leaf].states[group] === VARIANT_NULLS;
  if (!columns.residuals.every(empty)) return UNKNOWN;
  if (columns.primitive === undefined) return ONLY_NULL;
  const leaf = leaves[columns.primitive];
  if (leaf.states[group] === ALL_NULL) return ONLY_NULL;
  const bound = (side) => (leaf[side] && leaf[side][group] !== undefined ? leaf[side][group] : null);
  return { lower: bound("lower"), upper: bound("upper"), mayBeNull: leaf.states[group] !== NO_NULLS,
    mayBeValue: true, mayBeNaN: /^(double|float)$/.test(node.kind || "") };
}

// ---- predicates

const TOKEN = /\s*(?:([-+]?(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][-+]?\d+)?)(?![\w.])|('(?:[^']|'')*')|("(?:[^"]|"")*"|`(?:[^`]|``)*`)|(\$(?:\.\w+|\[\*\]|\['(?:[^'\\]|\\.)*'\])*)|([^\W\d]\w*)|(<>|!=|<=|>=|==|=|<|>)|([(),])|$)/uy;
const KINDS = ["number", "string", "quoted", "path", "name", "op", "mark"];

/** A filter as text into a tree; throws an Error that says what was expected. */
function parseFilter(text) {
  const tokens = [];
  TOKEN.lastIndex = 0;
  while (TOKEN.lastIndex < text.length) {
    const at = TOKEN.lastIndex, match = TOKEN.exec(text);
    if (!match) throw new Error(`cannot read the filter at “${text.slice(at).trim().slice(0, 20)}”`);
    const kind = match.slice(1).findIndex((each) => each !== undefined);
    if (kind < 0) break;
    tokens.push({ kind: KINDS[kind], text: match[kind + 1] });
  }
  let at = 0;
  const word = () => (at < tokens.length && tokens[at].kind === "name" ? tokens[at].text.toLowerCase() : at < tokens.length ? tokens[at].text : "");
  const accept = (...words) => {
    const from = at;
    for (const each of words) { if (word() !== each) { at = from; return false; } at++; }
    return true;
  };
  const fail = (what) => { throw new Error(`expected ${what}, found ${at < tokens.length ? "“" + tokens[at].text + "”" : "the end"}`); };
  const literal = () => {
    if (at >= tokens.length) fail("a literal");
    const token = tokens[at++];
    if (token.kind === "number") return Number(token.text);
    if (token.kind === "string") return token.text.slice(1, -1).replace(/''/g, "'");
    const name = token.kind === "name" ? token.text.toLowerCase() : "";
    if (name === "true" || name === "false") return name === "true";
    if ((name === "date" || name === "timestamp") && at < tokens.length && tokens[at].kind === "string") return literal();
    at--;
    return fail("a literal");
  };
  const column = () => {
    const token = tokens[at];
    if (!token || !["name", "quoted", "path"].includes(token.kind)) fail("a path or a name");
    at++;
    return token.kind === "quoted" ? token.text.slice(1, -1) : token.text;
  };
  const one = () => {
    if (accept("not")) return { not: one() };
    if (accept("(")) { const inner = any(); if (!accept(")")) fail("“)”"); return inner; }
    const name = column();
    if (accept("is")) {
      const not = accept("not");
      if (!accept("null")) fail("NULL");
      return not ? { not: { isNull: name } } : { isNull: name };
    }
    const negated = accept("not");
    let found;
    if (accept("in")) {
      if (!accept("(")) fail("“(”");
      const parts = [];
      do parts.push({ compare: name, op: "=", literal: literal() }); while (accept(","));
      if (!accept(")")) fail("“)”");
      found = { or: parts };
    } else if (accept("between")) {
      const low = literal();
      if (!accept("and")) fail("AND");
      found = { and: [{ compare: name, op: ">=", literal: low }, { compare: name, op: "<=", literal: literal() }] };
    } else if (accept("like")) found = { like: name, pattern: String(literal()) };
    else {
      if (negated || at >= tokens.length || tokens[at].kind !== "op") fail("=, <>, <, <=, >, >=, IN, BETWEEN, LIKE or IS NULL");
      const op = tokens[at++].text;
      return { compare: name, op: { "==": "=", "!=": "<>" }[op] || op, literal: literal() };
    }
    return negated ? { not: found } : found;
  };
  const all = () => { const parts = [one()]; while (accept("and")) parts.push(one()); return parts.length > 1 ? { and: parts } : parts[0]; };
  const any = () => { const parts = [all()]; while (accept("or")) parts.push(all()); return parts.length > 1 ? { or: parts } : parts[0]; };
  const tree = any();
  if (at < tokens.length) fail("AND, OR or the end");
  return tree;
}

const FILTER_WORDS = new Set(["and", "or", "not", "in", "is", "null", "like", "between", "true", "false", "date", "timestamp"]);

/** A filter with other text for each column that it names; `rename` gets the name, without quotes. */
function mapColumns(text, rename) {
  let out = "", last = 0;
  TOKEN.lastIndex = 0;
  while (TOKEN.lastIndex < text.length) {
    const match = TOKEN.exec(text);
    const number = match ? match.slice(1).findIndex((each) => each !== undefined) : -1;
    if (number < 0) break;
    const token = match[number + 1], kind = KINDS[number], start = TOKEN.lastIndex - token.length;
    if (kind === "path" || kind === "quoted" || (kind === "name" && !FILTER_WORDS.has(token.toLowerCase()))) {
      out += text.slice(last, start) + rename(kind === "quoted" ? token.slice(1, -1) : token);
      last = TOKEN.lastIndex;
    }
  }
  return out + text.slice(last);
}

/** The columns that a filter names. */
function filterColumns(tree) {
  if (tree.not) return filterColumns(tree.not);
  if (tree.and || tree.or) return (tree.and || tree.or).flatMap(filterColumns);
  return [tree.isNull || tree.compare || tree.like];
}

/** Whether a filter may be true, and may be false, for some row; may_match in Python. Unknown never skips. */
function possible(tree, facts) {
  if (tree.not) { const [yes, no] = possible(tree.not, facts); return [no, yes]; }
  if (tree.and) { const parts = tree.and.map((each) => possible(each, facts)); return [parts.every((p) => p[0]), parts.some((p) => p[1])]; }
  if (tree.or) { const parts = tree.or.map((each) => possible(each, facts)); return [parts.some((p) => p[0]), parts.every((p) => p[1])]; }
  const known = facts(tree.isNull || tree.compare || tree.like);
  if (tree.isNull) return [known.mayBeNull, known.mayBeValue];
  if (!known.mayBeValue) return [false, false];
  if (tree.like) return possibleLike(tree, known);
  return possibleCompare(tree, known);
}

function possibleLike(tree, known) {
  const prefix = tree.pattern.split(/[%_\\]/)[0];
  if (typeof known.upper === "string" && compareText(known.upper, prefix) < 0) return [false, true];
  if (typeof known.lower === "string" && compareText([...known.lower].slice(0, [...prefix].length).join(""), prefix) > 0) return [false, true];
  return [true, true];
}

function possibleCompare(tree, known) {
  const literal = tree.literal;
  const order = (bound) => (typeof bound !== typeof literal ? null : typeof bound === "string" ? compareTimes(bound, literal) : bound < literal ? -1 : bound > literal ? 1 : 0);
  const low = order(known.lower), high = order(known.upper);
  const below = low === null || low < 0, above = high === null || high > 0 || Boolean(known.mayBeNaN);
  const equal = (low === null || low <= 0) && (high === null || high >= 0);
  return { "=": [equal, below || above], "<>": [below || above, equal], "<": [below, above || equal], "<=": [below || equal, above],
    ">": [above, below || equal], ">=": [above || equal, below] }[tree.op];
}

/** Texts in the order of their UTF-8 bytes. */
function compareText(a, b) {
  const left = [...a], right = [...b];
  for (let i = 0; i < left.length && i < right.length; i++) {
    const d = left[i].codePointAt(0) - right[i].codePointAt(0);
    if (d) return d;
  }
  return left.length - right.length;
}

/** Texts, or timestamps of which the literal may be written shorter. */
function compareTimes(bound, literal) {
  if (/^\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\.\d{6}$/.test(bound)) {
    const full = literal.replace("T", " ").replace(/Z$/, "");
    if (!/^\d{4}-\d\d-\d\d( \d\d:\d\d(:\d\d(\.\d{1,6})?)?)?$/.test(full)) return null;
    const shape = "0000-00-00 00:00:00.000000";
    return compareText(bound, full + (full.length === 19 ? "." : "") .concat(shape.slice(full.length + (full.length === 19 ? 1 : 0))));
  }
  return compareText(bound, literal);
}

// ---- plans

/** What a query over some paths reads: row groups, bytes, and by how much the filter helps. */
function planQuery(model, selected, filter) {
  const wanted = selected.map(({ node, type }) => ({ node, scalar: isPrimitive(type) }));
  const inFilter = new Map();
  if (filter) {
    for (const name of filterColumns(filter)) {
      const node = resolve(model, selected, name);
      if (!node) throw new Error(`there is no path or ticked name “${name}”`);
      if (!inFilter.has(name)) inFilter.set(name, node);
    }
  }
  for (const node of inFilter.values()) {
    if (!wanted.some((each) => each.node === node)) wanted.push({ node, scalar: true });
  }
  const footers = model.footers, groups = footers.groups;
  const perShape = footers.shapes.map((shape) => ({
    columns: wanted.map(({ node, scalar }) => columnsOfPath(model, shape, node, scalar)),
    filter: new Map([...inFilter].map(([name, node]) => [name, { node, columns: columnsOfPath(model, shape, node, true) }])),
  }));
  const read = [], bytesByGroup = [], columns = new Set(), residuals = new Set();
  let bytes = 0, rows = 0;
  groups.file.forEach((file, group) => {
    const plan = perShape[footers.files[file].shape];
    const facts = (name) => { const each = plan.filter.get(name); return factsOf(model, each.columns, each.node, group); };
    if (filter && !possible(filter, facts)[0]) { bytesByGroup.push(0); return; }
    const leaves = new Set();
    plan.columns.forEach((each, at) => (needed(model, each, wanted[at].scalar, group) || []).forEach((leaf) => leaves.add(leaf)));
    let size = 0;
    for (const leaf of leaves) {
      size += footers.leaves[leaf].bytes[group];
      columns.add(leaf);
      if (footers.leaves[leaf].name.endsWith("value") && !footers.leaves[leaf].name.endsWith("typed_value")) residuals.add(leaf);
    }
    read.push(group);
    bytesByGroup.push(size);
    bytes += size;
    rows += groups.rows[group];
  });
  return { groups: read, bytesByGroup, bytes, rows, columns: [...columns], residuals: [...residuals],
    files: new Set(read.map((group) => groups.file[group])).size };
}

function resolve(model, selected, name) {
  const ticked = selected.find((each) => each.alias === name);
  if (ticked) return ticked.node;
  return model.byPath.get(name) || null;
}

/** The name of an output column: the last key, made unique among those that are taken. */
function aliasOf(model, node, taken) {
  let at = node;
  while (at.key === null) at = model.nodes[at.parent];
  const base = at.parent === null ? "value" : at.key.replace(/[^A-Za-z0-9_]+/g, "_").replace(/^(\d|_*$)/, "c_$1");
  let alias = base;
  for (let n = 2; taken.has(alias.toLowerCase()); n++) alias = `${base}_${n}`;
  taken.add(alias.toLowerCase());
  return alias;
}

// ---- schemas

/** DDL of the nodes that have a type in `choice` (id → DDL type or "variant"). */
function renderDdl(model, choice) {
  const inside = new Set();
  for (const id of choice.keys()) for (let at = model.nodes[id]; at; at = at.parent === null ? null : model.nodes[at.parent]) inside.add(at.id);
  const quote = (name) => (/^[A-Za-z_][A-Za-z0-9_]*$/.test(name) ? name : "`" + name.replace(/`/g, "``") + "`");
  const fieldsOf = (node) => node.children.filter((child) => child.key !== null && inside.has(child.id));
  const type = (node) => {
    if (choice.has(node.id)) return choice.get(node.id);
    const fields = fieldsOf(node), element = node.children.find((child) => child.key === null && inside.has(child.id));
    const objects = node.kinds.object || 0, arrays = node.kinds.array || 0;
    if (element && (!fields.length || arrays >= objects)) return `array<${type(element)}>`;
    return `struct<${fields.map((child) => `${quote(child.key)}: ${type(child)}`).join(", ")}>`;
  };
  if (!inside.size) return "variant";
  if (choice.has(0)) return choice.get(0);
  const element = model.root.children.find((child) => child.key === null && inside.has(child.id));
  if (element && !fieldsOf(model.root).length) return type(model.root);
  return fieldsOf(model.root).map((child) => `${quote(child.key)} ${type(child)}`).join(", ");
}

/** The schema that the table has, or that `auto` would choose for JSON: id → type. */
function currentChoice(model) {
  const choice = new Map();
  for (const node of model.nodes) {
    const kind = model.footers || model.doc.kind === "vortex" ? node.kind : node.chosen ? node.column : null;
    const leaf = isPrimitive(kind) || (kind === "variant" && node.id !== 0);
    if (leaf) choice.set(node.id, kind);
  }
  return choice;
}

/** Share of a path's values that a type takes. */
function fits(node, type) {
  const kinds = node.kinds, all = Object.entries(kinds).reduce((sum, [kind, n]) => sum + (kind === "null" ? 0 : n), 0);
  if (!all || type === "variant") return type === "variant" ? 0 : 1;
  const integers = ["int8", "int16", "int32", "int64"], decimals = ["decimal4", "decimal8", "decimal16"];
  const names = { tinyint: integers, smallint: integers, int: integers, bigint: integers, double: ["double"], float: ["float"], string: ["string"],
    boolean: ["boolean"], date: ["date"], binary: ["binary"], uuid: ["uuid"] }[type] || (type.startsWith("decimal") ? [...integers, ...decimals] : [type]);
  return names.reduce((sum, kind) => sum + (kinds[kind] || 0), 0) / all;
}

/** Estimated bytes of a path's own typed column, and what it takes off the residual. */
function costOf(model, node, type) {
  const share = fits(node, type), ratio = model.doc.sample.ratio || 0.3;
  const measured = node.typed === null || node.typed === undefined ? node.encoded * ratio * 0.8 : node.typed;
  return { typed: measured * (type === "variant" ? 1 : share), saved: residualBytes(model, node) * (type === "variant" ? 1 : share), share };
}

/** Estimated bytes that a path takes, or would take, of the residual that it lies in, compressed. */
function residualBytes(model, node) {
  let holder = node;
  while (holder && (holder === node || !holder.kind)) holder = holder.parent === null ? null : model.nodes[holder.parent];
  return node.encoded * ((!node.kind && holder && residualRatio(model, holder)) || model.doc.sample.ratio || 0.3);
}

/** Compressed bytes of a group's residual for each encoded byte in it: what its fields without columns share. */
function residualRatio(model, group) {
  if (!model.footers) return 0;
  if (group.ratio === undefined) {
    const fields = group.children.filter((child) => !child.kind);
    const encoded = fields.reduce((sum, child) => sum + child.encoded, 0);
    group.ratio = encoded ? group.bytes / encoded : 0;
  }
  return group.ratio;
}

/** Predicted bytes of the table under another schema. */
function predictSize(model, choice) {
  const now = currentChoice(model), scale = model.doc.sample.rows ? model.doc.rows / model.doc.sample.rows : 1;
  let bytes = model.variantBytes === null ? (model.doc.kind === "json" ? model.doc.sample.shredded * scale : model.doc.bytes) : model.variantBytes;
  for (const node of model.nodes) {
    const was = now.get(node.id), will = choice.get(node.id);
    if (was === will) continue;
    if (was !== undefined) bytes += costOf(model, node, was).saved - (model.footers ? node.bytes : costOf(model, node, was).typed);
    if (will !== undefined) bytes += costOf(model, node, will).typed - costOf(model, node, will).saved;
  }
  return Math.max(0, bytes);
}

/** The paths that typing a node means: itself, or what is frequent below it. */
function typable(node, least) {
  if (node.column && isPrimitive(node.column)) return [node];
  const found = [];
  const stack = [...node.children];
  while (stack.length) {
    const each = stack.pop();
    if (each.column && isPrimitive(each.column) && each.count >= (least === undefined ? 0.2 : least) * node.count) found.push(each);
    stack.push(...each.children);
  }
  return found;
}
