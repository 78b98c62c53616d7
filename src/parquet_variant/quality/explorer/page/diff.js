// The differences of two data sets: one card per finding, with the figures of both sides and example rows.
"use strict";

const EVIDENCE = { values: "all values were read", footers: "proved by footers and residual columns", sample: "from a sample" };
const SHOWN = 500;

class DiffPage {
  constructor(doc) {
    this.doc = doc;
    document.getElementById("source").textContent = `${doc.before.name} → ${doc.after.name}`;
    document.getElementById("sentence").textContent = doc.equal ? "No differences." : `${plural(doc.findings.length, "difference")}. Ranges, distinct values and lengths differ by a factor of ${doc.factor} or more, shares by ${percent(doc.min_change)} or more.`;
    const facts = [["rows", (side) => count(side.rows)], ["paths", (side) => count(side.paths)], ["read", (side) => humanBytes(side.bytes_read)]];
    document.getElementById("summary").append(element("dl", { class: "facts" }, ...facts.map(([label, value]) => element("div", {}, element("dt", {}, label), element("dd", {}, `${value(doc.before)} → ${value(doc.after)}`)))));
    document.getElementById("sides").append(this.sides());
    const select = document.getElementById("change"), kinds = [...new Set(doc.findings.map((finding) => finding.change))];
    select.append(...[["", "all"], ...kinds.map((kind) => [kind, kind])].map(([value, label]) => element("option", { value }, label)));
    for (const id of ["search", "change"]) document.getElementById(id).addEventListener("input", () => this.draw());
    this.draw();
    document.body.dataset.ready = "yes";
  }

  draw() {
    const part = document.getElementById("search").value.toLowerCase(), change = document.getElementById("change").value;
    const found = this.doc.findings.filter((finding) => finding.path.toLowerCase().includes(part) && (!change || finding.change === change));
    document.getElementById("found").textContent = plural(found.length, "difference") + (found.length > SHOWN ? `, the first ${SHOWN} are shown` : "");
    document.getElementById("findings").replaceChildren(...found.slice(0, SHOWN).map((finding) => this.card(finding)));
  }

  card(finding) {
    const nested = finding.nested ? ` With ${plural(finding.nested, "path")} below it.` : "";
    const figures = table(["", "before", "after"], this.figures(finding));
    const examples = finding.examples.length ? [element("h3", {}, "Example rows"), table(["side", "row", "file", "value"], finding.examples.map((example) => [example.side, count(example.row), example.file || "–", element("code", {}, example.value === null ? "–" : example.value)]), [1])] : [];
    return element("article", { class: "finding" }, element("h2", {}, element("span", { class: "change change-" + finding.change }, finding.change), element("span", { class: "path-title" }, finding.path)),
      element("p", {}, `${finding.text}.${nested} `, element("span", { class: "faint" }, EVIDENCE[finding.evidence] + ".")), figures, ...examples);
  }

  figures(finding) {
    const types = (side) => Object.entries(side.types).sort((a, b) => b[1] - a[1]).map(([name, number]) => `${name} ${percent(number / side.count)}`).join(", ");
    const ranges = (side) => Object.values(side.ranges).map(([low, high]) => `${low} to ${high}`).join("; ");
    const mean = (number, unit) => (number === null ? "" : `${number.toFixed(1)} ${unit}`);
    const lines = [["values", (side) => `${count(side.count)} of ${count(side.places)} places (${percent(side.share)})`], ["types", types], ["range", ranges],
      ["distinct", (side) => (side.distinct ? `≈ ${count(side.distinct)} of ${count(side.distinct_of)}` : "")],
      ["mean length", (side) => [mean(side.mean_string_bytes, "bytes"), mean(side.mean_elements, "elements")].filter(Boolean).join(", ")]];
    return lines.map(([label, text]) => [label, ...[finding.before, finding.after].map((side) => (side === null ? "–" : text(side) || "–"))]).filter((line) => line[1] !== "–" || line[2] !== "–");
  }

  sides() {
    const lines = [["data", (side) => side.name], ["format", (side) => side.kind], ["column", (side) => side.column], ["rows", (side) => (side.evidence === "sample" ? "≈ " : "") + count(side.rows)], ["known by", (side) => EVIDENCE[side.evidence]],
      ["sampled rows", (side) => count(side.sampled_rows)], ["read", (side) => `${humanBytes(side.bytes_read)} of ${humanBytes(side.bytes)}`]];
    return table(["", "before", "after"], lines.map(([label, text]) => [label, text(this.doc.before), text(this.doc.after)]));
  }
}

start((doc) => { window.explorer = new DiffPage(doc); });
