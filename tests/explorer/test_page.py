"""The page in a browser: what a person does with it, and that its figures are those of the library."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import pytest

import parquet_variant as pv
from parquet_variant.quality.explorer.explore import save_diff

KEYS = {"down": "\ue015", "left": "\ue012", "right": "\ue014", "home": "\ue011", "end": "\ue010", "space": " "}


@pytest.fixture(scope="module")
def page(table: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return pv.open(table).explore().save(tmp_path_factory.mktemp("page") / "explore.html")


@pytest.fixture
def opened(browser: Any, page: Path) -> Any:
    return _open(browser, page)


def _open(browser: Any, page: Path) -> Any:
    browser.get("about:blank")
    browser.get(page.as_uri())
    _wait(lambda: browser.find_element("tag name", "body").get_attribute("data-ready") == "yes")
    return browser


def _wait(done: Any) -> None:
    for _ in range(300):
        if done():
            return
        time.sleep(0.05)
    raise AssertionError("the page does not get there")


def _rows(browser: Any) -> list[str]:
    """Read by one script: rows that are asked one by one may have been drawn again in between."""
    return list(
        browser.execute_script("return Array.from(document.querySelectorAll('#grid .row .name'), (e) => e.innerText)")
    )


def _tab(browser: Any, name: str) -> None:
    browser.find_element("id", f"tab-{name}").click()


def test_nothing_is_complained_of(opened: Any) -> None:
    assert [entry for entry in opened.get_log("browser") if entry["level"] == "SEVERE"] == []


def test_the_tree_opens_sorts_and_is_searched(opened: Any) -> None:
    _tab(opened, "paths")
    assert _rows(opened)[:3] == ["$", "id", "issue"]
    opened.find_element("css selector", ".grid-head .bytes button").click()
    by_bytes = _rows(opened)
    assert by_bytes[1] != "kind"
    opened.find_element("css selector", ".grid-head .path button").click()
    search = opened.find_element("id", "search")
    search.send_keys("ISSUE.t")
    assert _rows(opened) == ["$.issue.title"]
    assert opened.find_element("id", "found").text == "1 path"
    assert opened.find_element("css selector", "#details h2").text == "$.issue.title"
    search.clear()
    search.send_keys("x", "\ue003")
    assert _rows(opened)[0] == "$"


def test_the_keyboard_is_enough(opened: Any) -> None:
    _tab(opened, "paths")
    body = opened.find_element("css selector", ".grid-body")
    body.send_keys(KEYS["home"], KEYS["left"])
    assert _rows(opened) == ["$"]
    body.send_keys(KEYS["right"], KEYS["down"], KEYS["space"])
    current = opened.find_element("css selector", "#grid .row.current")
    assert current.find_element("css selector", ".name").text == "id"
    assert current.get_attribute("aria-selected") == "true"
    assert body.get_attribute("aria-activedescendant") == current.get_attribute("id")
    assert opened.find_element("css selector", "#details h2").text == "$.id"
    body.send_keys(KEYS["space"])
    opened.find_element("id", "tab-paths").send_keys(KEYS["right"])
    assert opened.switch_to.active_element.get_attribute("id") == "tab-query"


def test_a_newcomer_reads_why_a_path_is_slow_what_typing_it_costs_and_how(opened: Any) -> None:
    _tab(opened, "paths")
    opened.execute_script("explorer.actions.show(explorer.model.byPath.get('$.issue'))")
    text = opened.find_element("id", "details").text
    assert "It is slow because it has no column of its own" in text
    assert "What would typing it cost?" in text
    assert "2 columns for what is frequent below it" in text
    assert "variant rewrite" in text
    command = opened.find_element("css selector", "#details pre").text
    ddl = command.split("--schema '")[1].rstrip("'")
    assert pv.ShreddingSchema.from_ddl(ddl).get("$.issue.number") is not None
    opened.find_element("css selector", "#details button.primary").click()
    assert _typed_columns(opened) == "7"
    opened.find_element("id", "schema-reset").click()
    assert _typed_columns(opened) == "5"


def _typed_columns(opened: Any) -> str:
    return str(opened.find_element("css selector", "#schema-facts div:last-child dd").text)


def test_both_themes_and_a_narrow_screen(opened: Any, browser: Any) -> None:
    _tab(opened, "paths")
    colour = "return getComputedStyle(document.body).backgroundColor"
    first = opened.execute_script(colour)
    opened.find_element("id", "theme").click()
    assert opened.execute_script(colour) != first
    opened.find_element("id", "theme").click()
    browser.set_window_size(500, 900)
    try:
        wide = "return document.documentElement.scrollWidth <= document.documentElement.clientWidth"
        for name in ("paths", "query", "schema", "mixed"):
            _tab(opened, name)
            assert opened.execute_script(wide), name
    finally:
        browser.set_window_size(1400, 900)


def test_texts_of_data_do_nothing_in_the_page(browser: Any, tmp_path: Path) -> None:
    bad = ["<script>window.hurt=1</script>", "</script><img src=x onerror=window.hurt=1>", '"onload=window.hurt=1 x="']
    folder = tmp_path / "<img src=x onerror=window.hurt=1>"
    folder.mkdir()
    rows = [json.dumps({text: text, "k": {text: [text, 1]}}) for text in bad]
    pv.write(folder / "<b onclick=x>.parquet", pv.parse_json(rows))
    opened = _open(browser, pv.open(folder).explore().save(tmp_path / "page.html"))
    for name in ("query", "schema", "mixed", "paths"):
        _tab(opened, name)
    opened.execute_script(
        "for (const node of explorer.model.nodes) { explorer.select(node); explorer.grid.tick(node); }"
    )
    _tab(opened, "query")
    assert opened.execute_script("return window.hurt") is None
    assert opened.find_elements("css selector", "img, b") == []


def test_ten_thousand_paths_have_few_rows_in_the_page(browser: Any, tmp_path: Path) -> None:
    rows = [json.dumps({f"key_{n}": n for n in range(start, start + 1000)}) for start in range(0, 10_000, 1000)]
    pv.write(tmp_path / "0.parquet", pv.parse_json(rows))
    opened = _open(browser, pv.open(tmp_path).explore().save(tmp_path / "page.html"))
    assert opened.execute_script("return explorer.grid.rows.length") == 10_001
    assert 10 < len(_rows(opened)) < 100
    opened.find_element("css selector", ".grid-body").send_keys(KEYS["end"])
    _wait(lambda: _rows(opened)[-1] == "key_9999")  # drawn when the browser says that it has scrolled


FILTERS = [
    None,
    "$.id > 2500",
    "$.id < 100 or $.kind = 'none'",
    "$.kind like 'pu%' and not $.id between 1000 and 1999",
    "$.id is null",
    "$.size in (5, 6)",
    "$.issue.number = 4",
    "$.user.name >= 'u9' or $.user.name < 'a'",
]


IN_FILTERS = {
    "$.id": ("f_id", "bigint"),
    "$.kind": ("f_kind", "string"),
    "$.size": ("f_size", "bigint"),
    "$.issue.number": ("f_number", "bigint"),
    "$.user.name": ("f_name", "string"),
}


@pytest.mark.parametrize("text", FILTERS)
def test_what_is_read_is_what_explain_says(opened: Any, table: Path, text: str | None) -> None:
    """The same bytes and row groups as `Scan.explain`, for typed and untyped paths and lists."""
    selected = {"id": ("$.id", "bigint"), "name": ("$.user.name", "string"), "title": ("$.issue.title", "string"),
                "tags": ("$.tags[*]", "string")}  # fmt: skip
    for names in (["id"], ["id", "name"], ["title"], ["tags", "id"], list(selected)):
        columns = {name: selected[name] for name in names}
        where, hidden = text, {}
        for path, given in IN_FILTERS.items():
            if where and path in where:
                where, hidden[given[0]] = where.replace(path, given[0]), (path, given[1])
        report = pv.open(str(table)).scan(columns | hidden, where).explain()
        asked = [[columns[name][0], columns[name][1], name] for name in names]
        plan = opened.execute_script(
            """const model = explorer.model;
            const selected = arguments[0].map(([path, type, alias]) => ({ node: model.byPath.get(path), type, alias }));
            const plan = planQuery(model, selected, arguments[1] ? parseFilter(arguments[1]) : null);
            return [plan.bytes, plan.groups.length, plan.rows, plan.files];""",
            asked,
            text,
        )
        assert plan == [
            report.bytes_read,
            report.row_groups_read,
            report.rows_read,
            report.files_read,
        ], (names, text)


@pytest.mark.parametrize("text", ["$.id >", "$.id = ", "nothing = 1", "$.id = 'x' and", "(", "$.id ~ 3"])
def test_a_filter_that_cannot_be_read_is_said(opened: Any, text: str) -> None:
    _tab(opened, "query")
    field = opened.find_element("id", "filter")
    field.clear()
    field.send_keys(text)
    assert opened.find_element("id", "filter-error").text
    assert opened.find_element("id", "texts").text == ""
    field.clear()
    field.send_keys("x", "\ue003")


def test_the_texts_to_copy_run(opened: Any, table: Path) -> None:
    texts = opened.execute_script(
        """const model = explorer.model, taken = new Set();
        const selected = ["$.id", "$.user.name", "$.tags[*]"].map((path) => {
            const node = model.byPath.get(path);
            return { node, type: typeOf(node), alias: aliasOf(model, node, taken) }; });
        return queryTexts(model, selected, "$.id > 5990 and $.size is not null");"""
    )
    scope: dict[str, Any] = {}
    exec(texts["python"].replace("\npv.open", "\nfound = pv.open"), scope)
    rows = scope["found"]
    assert rows.column("id").to_pylist() == [5991, 5992, 5993, 5994, 5995, 5996, 5997, 5998, 5999][: len(rows)]
    assert set(rows.column_names) == {"id", "name", "tags", "size"}
    assert f"variant query '{table}' --select 'id=$.id:bigint'" in texts["cli"]


def test_versions_and_a_comparison_are_shown(browser: Any, table: Path, tmp_path: Path) -> None:
    target = str(tmp_path / "delta")
    pv.write(target, {"v": pv.parse_json(['{"id": 1}'])}, format="delta")
    opened = _open(browser, pv.open(target).explore(compare=table).save(tmp_path / "page.html"))
    _tab(opened, "versions")
    assert "CREATE TABLE AS SELECT" in opened.find_element("id", "panel-versions").text
    _tab(opened, "compare")
    assert "$.user.name" in opened.find_element("id", "panel-compare").text


def test_estimates_of_what_shares_a_residual_add_up_to_it(browser: Any, tmp_path: Path) -> None:
    rows = [f'{{"id": {at}, "o": {{"text": "{at * 7919:050d}", "n": {at}}}, "k": "{at % 3}"}}' for at in range(3000)]
    pv.write(tmp_path / "table.parquet", pv.parse_json(rows), schema="id bigint")
    opened = _open(browser, pv.open(tmp_path / "table.parquet").explore().save(tmp_path / "page.html"))
    whole, parts = opened.execute_script(
        """const model = explorer.model, of = (path) => residualBytes(model, model.byPath.get(path));
        return [model.root.bytes, [of("$.o"), of("$.k"), of("$.o.text") + of("$.o.n")]];"""
    )
    assert sum(parts[:2]) == pytest.approx(whole)
    assert 0 < parts[2] <= parts[0]


@pytest.mark.parametrize("name", ["cve_v5", "gharchive", "windows_events"])
def test_bytes_said_are_the_bytes_read(browser: Any, variant_test_data: Path, tmp_path: Path, name: str) -> None:
    """Over real data: within 5 % of what a scan then reads, for each path alone and for all of them together."""
    pv.ingest(str(variant_test_data / "data" / f"{name}.ndjson.zst"), str(tmp_path / "table"))
    found = pv.open(tmp_path / "table").explore()
    opened = _open(browser, found.save(tmp_path / "page.html"))
    plans = opened.execute_script(
        """const model = explorer.model;
        const wanted = model.nodes.filter((node) => isPrimitive(typeOf(node)));
        const some = wanted.filter((_, at) => at % Math.ceil(wanted.length / 12) === 0);
        const plan = (nodes) => planQuery(model, nodes.map((node) => ({ node, type: typeOf(node) })), null).bytes;
        return [...some.map((node) => [[[node.path, typeOf(node)]], plan([node])]),
                [some.map((node) => [node.path, typeOf(node)]), plan(some)]];"""
    )
    assert len(plans) > 5
    for selected, said in plans:
        scan = pv.open(str(tmp_path / "table")).scan({f"c{at}": tuple(each) for at, each in enumerate(selected)})
        scan.to_arrow()
        assert said == pytest.approx(scan.bytes_read, rel=0.05), selected


def test_the_page_of_differences_shows_and_filters_findings(browser: Any, tmp_path: Path) -> None:
    old = pv.parse_json([json.dumps({"id": n, "kind": "<b>"}) for n in range(50)])
    new = pv.parse_json([json.dumps({"id": str(n), "kind": "<b>", "extra": [1.5]}) for n in range(50)])
    page = save_diff(pv.open(old).diff(new), tmp_path / "diff.html")
    _open(browser, page)
    shown = [title.text for title in browser.find_elements("css selector", ".finding .path-title")]
    assert shown == ["$['id']", "$['extra']"]
    browser.find_element("id", "search").send_keys("ext")
    assert [card.text.splitlines()[0] for card in browser.find_elements("css selector", ".finding h2")] == ["appeared"]
    assert browser.find_element("id", "found").text == "1 difference"
    assert [entry for entry in browser.get_log("browser") if entry["level"] == "SEVERE"] == []
