"""The code that the page offers to copy runs, for any key and filter; checked with Node, without a browser."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

import parquet_variant as pv
from parquet_variant.cli.app import main
from parquet_variant.quality.explorer import page

NODE = shutil.which("node")
pytestmark = pytest.mark.skipif(NODE is None, reason="node is not installed: apt-get install nodejs")
KEYS = ["a", "a b", "a.b", "it's", 'q"', "order", "in", "\u00e9", "1", "$", "select", "c"]
KEYS += [
    "",
    "a\\b",
    "tab\t",
    "line\n",
    "007",
    "a]b",
    "a`b",
    "A",
    "true",
    "date",
    "\u65e5\u672c \U0001f600",
    "--x",
    "[*]",
]
ROWS = [dict.fromkeys(KEYS, number) | {"d": {"a": number, "ab": number + 1}, "s": f"x{number}"} for number in range(5)]

SCRIPT = """
const fs = require("fs"), vm = require("vm");
const [folder, document, selected, filter] = process.argv.slice(2);
const source = ["model.js", "views.js"].map((name) => fs.readFileSync(`${folder}/${name}`, "utf8")).join("\\n");
const element = () => ({ append() {}, addEventListener() {} });
const run = new vm.Script(source + `
;(() => {
  const model = buildModel(JSON.parse(text));
  const taken = new Set();
  const ticked = JSON.parse(paths).map((path) => { const node = model.byPath.get(path);
    return { node, type: typeOf(node), alias: aliasOf(model, node, taken) }; });
  return JSON.stringify(queryTexts(model, ticked, filter));
})()`);
const text = fs.readFileSync(document, "utf8");
const context = vm.createContext({ text, paths: selected, filter, element, console });
process.stdout.write(run.runInContext(context));
"""


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("copied") / "it's a table.parquet"
    pv.write(path, {"my v": pv.parse_json([json.dumps(row) for row in ROWS])}, schema="infer")
    return path


def _texts(table: Path, paths: list[str], where: str, folder: Path) -> dict[str, str]:
    document = folder / "document.json"
    document.write_text(json.dumps(pv.open(table).explore().to_dict()))
    script = folder / "run.js"
    script.write_text(SCRIPT)
    scripts = str(Path(page.__file__).parent)
    command = [str(NODE), str(script), scripts, str(document), json.dumps(paths), where]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return dict(json.loads(done.stdout))


def _run_all(texts: dict[str, str], capsys: pytest.CaptureFixture[str]) -> list[list[Any]]:
    """The rows that the Python, the SQL and the command line give."""
    import shlex

    variables: dict[str, Any] = {}
    code = texts["python"].replace("pv.open(", "result = pv.open(")
    exec(code, variables)
    found = [[tuple(row.values()) for row in variables["result"].to_pylist()]]
    for text in (texts["sql"], texts["cli"]):
        words = shlex.split(text)
        assert words[0] == "variant"
        assert main([*words[1:], "--json"]) == 0, text
        found.append([tuple(json.loads(line).values()) for line in capsys.readouterr().out.splitlines()])
    return found


@pytest.mark.parametrize("start", range(5))
def test_any_key(table: Path, tmp_path: Path, start: int, capsys: pytest.CaptureFixture[str]) -> None:
    paths = [pv.VariantPath((key,)).shorthand for key in KEYS[start::5]]
    texts = _texts(table, paths, " and ".join(f"{path} > 2" for path in paths), tmp_path)
    assert _run_all(texts, capsys) == [[(3,) * len(paths), (4,) * len(paths)]] * 3


@pytest.mark.parametrize(
    ("paths", "where", "rows"),
    [
        (["$.d.a"], "$.d.a > 2 and $.d.ab < 5", [(3, 4)]),
        (["$.a", "$.d.a"], "a = 1 or $.s like 'x$.a%'", [(1, 1, "x1")]),
        (["$.s"], "s in ('x1', 'a and $.s') and $.a is not null", [("x1", 1)]),
        (["$.c"], '"c" between 1 and 2 and not ($.a = 2)', [(1, 1)]),
    ],
)
def test_filters(
    table: Path, tmp_path: Path, paths: list[str], where: str, rows: list[Any], capsys: pytest.CaptureFixture[str]
) -> None:
    assert _run_all(_texts(table, paths, where, tmp_path), capsys) == [rows] * 3


def test_a_name_that_is_not_a_path_is_refused(table: Path, tmp_path: Path) -> None:
    with pytest.raises(AssertionError, match="unknown path or name nope"):
        _texts(table, ["$.a"], "nope > 1", tmp_path)
