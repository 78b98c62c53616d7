// Rows and SQL of a page that `variant explore --serve` serves: asks the server that it came from, with its token.
"use strict";

class Live {
  constructor(host, doc) {
    this.token = doc.live;
    this.text = element("textarea", { rows: "5", "aria-label": "SQL", spellcheck: "false" });
    this.text.value = `SELECT *\nFROM t\nLIMIT 20`;
    const run = element("button", { type: "button", class: "primary", id: "run-sql" }, "Run");
    this.out = element("div", { "aria-live": "polite", id: "sql-rows" });
    run.addEventListener("click", () => this.run());
    this.text.addEventListener("keydown", (event) => { if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) this.run(); });
    host.append(element("p", {}, "SQL over this table as ", element("code", {}, "t"), "; paths as ", element("code", {}, `${doc.column}:a.b::string`), `. Read-only. A query shows at most ${doc.limits.rows} rows, and is stopped after ${doc.limits.seconds} seconds. Ctrl+Enter runs it.`), this.text, element("p", {}, run), this.out);
  }

  async run() {
    this.out.replaceChildren(element("p", { class: "faint" }, "Running…"));
    try {
      const answer = await fetch("sql", { method: "POST", headers: { "Content-Type": "application/json", "X-Token": this.token }, body: JSON.stringify({ sql: this.text.value }) });
      const found = await answer.json();
      if (found.error) this.out.replaceChildren(element("p", { class: "error" }, found.error));
      else this.out.replaceChildren(table(found.columns, found.rows.map((row) => row.map((value) => (value === null ? element("span", { class: "faint" }, "null") : String(value))))), element("p", { class: "faint" }, found.more ? `The first ${found.rows.length} rows: the result has more.` : plural(found.rows.length, "row")));
    } catch (error) {
      this.out.replaceChildren(element("p", { class: "error" }, "The server does not answer: " + error.message));
    }
  }
}
