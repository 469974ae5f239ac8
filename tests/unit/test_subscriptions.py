"""Files of subscriptions: every format, where each row came from, and what each does with bad rows."""

import gzip
import json
import time
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from sardonyx import Broker, open_broker
from sardonyx.errors import IndexFormatError, SubscriptionFileError
from sardonyx.subscriptions import is_index, read
from sardonyx.tabular import Defaults
from tests.shared_data import DATA, needs_data

ROWS = [
    {"id": "one", "query": "/a"},
    {"id": "007", "query": "/p:a[. = 'x, \"y\"']", "namespaces": {"p": "urn:p"}},
    {"id": "n", "query": "//b", "stream": "news", "ignore_namespaces": True},
    {"id": "t", "query": "<x>{//b}</x>", "language": "xquery", "notify_empty": True},
]


def expected(subscription_id: str, query: str, **others: Any) -> dict[str, Any]:
    nothing = {"namespaces": None, "ignore_namespaces": False, "stream": None, "language": None, "notify_empty": False}
    return {"subscription_id": subscription_id, "query": query, **nothing, **others}


EXPECTED = [
    expected("one", "/a"),
    expected("007", "/p:a[. = 'x, \"y\"']", namespaces='{"p": "urn:p"}'),
    expected("n", "//b", ignore_namespaces=True, stream="news"),
    expected("t", "<x>{//b}</x>", language="xquery", notify_empty=True),
]


def write(path: Path, content: str | bytes) -> Path:
    data = content.encode() if isinstance(content, str) else content
    path.write_bytes(gzip.compress(data) if path.suffix == ".gz" else data)
    return path


def csv_text() -> str:
    quoted = '"{""p"": ""urn:p""}"'
    return (
        "id,query,namespaces,stream,ignore_namespaces,comment,language,notify_empty\r\n"
        "one,/a,,,,hello,,\r\n"
        f'007,"/p:a[. = \'x, ""y""\']",{quoted},,,,,\r\n'
        "n,//b,,news,true,,,\r\n"
        "t,<x>{//b}</x>,,,,,xquery,true\r\n"
    )


YAML = """\
- {id: one, query: /a, description: for the reader}
- id: 007
  query: "/p:a[. = 'x, \\"y\\"']"
  namespaces: {p: urn:p}
  stream: null
- id: n
  query: //b
  stream: news
  ignore_namespaces: yes
- {id: t, query: "<x>{//b}</x>", language: xquery, notify_empty: true}
"""


def everything(path: Path, defaults: Defaults | None = None) -> tuple[list[dict[str, Any]], list[Any]]:
    rows, letters = [], []
    for batch in read(path, defaults):
        rows += batch.table.to_pylist()
        letters += batch.rejected
    return rows, letters


@pytest.mark.parametrize(
    "name", ["s.jsonl", "s.ndjson", "s.jsonl.gz", "s.csv", "s.csv.gz", "s.yaml", "s.yml", "s.parquet"]
)
def test_every_format_gives_the_same(name: str, tmp_path: Path) -> None:
    path = tmp_path / name
    if ".json" in name or ".ndjson" in name:
        write(path, "\n".join(json.dumps(row) for row in ROWS) + "\n\n")
    elif ".csv" in name:
        write(path, csv_text())
    elif name.endswith("parquet"):
        names = ("id", "query", "stream", "ignore_namespaces", "language", "notify_empty")
        columns = {key: [row.get(key) for row in ROWS] for key in names}
        columns["namespaces"] = [json.dumps(row["namespaces"]) if "namespaces" in row else None for row in ROWS]
        pq.write_table(pa.table(columns), path)
    else:
        write(path, YAML)
    assert everything(path) == (EXPECTED, [])


@pytest.mark.parametrize("name", ["q.txt", "q.txt.gz", "q.TXT"])
def test_lines_of_text(name: str, tmp_path: Path) -> None:
    path = write(tmp_path / name, "\ufeff/a\r\n\n  //b[. = '\u2028\x0b']  \n/c[\n")
    rows, letters = everything(path)
    assert [(row["subscription_id"], row["query"]) for row in rows] == [
        ("1", "/a"),
        ("3", "//b[. = '\u2028\x0b']"),
        ("4", "/c["),
    ]
    assert letters == []
    _broker, report = open_broker(path)
    assert [(letter.subscription_id, letter.source) for letter in report.rejected] == [("4", f"{path}:4")]


@pytest.mark.parametrize("name", ["cheap.books.xq", "cheap.books.xquery.gz", "cheap.books.XQ"])
def test_a_file_of_one_transformation(name: str, tmp_path: Path) -> None:
    text = "(: of a shop :)\nfor $b in //b\nreturn <r>{$b}</r>\n"
    path = write(tmp_path / name, "\ufeff" + text)
    assert everything(path) == ([expected("cheap.books", text, language="xquery")], [])
    _broker, report = open_broker(write(tmp_path / "bad.xq", "for $b in //b\nreturn <r>{$b</r>\n"))
    (letter,) = report.rejected
    assert (letter.subscription_id, letter.kind, letter.source) == ("bad", "query_syntax", f"{tmp_path / 'bad.xq'}")
    assert letter.line == 2


def test_transformations_compare_whole_names(tmp_path: Path) -> None:
    rows = [{"id": str(n), "query": "/a", "language": language} for n, language in enumerate(["xquery", "xpath", None])]
    path = write(tmp_path / "s.jsonl", "\n".join(json.dumps(row) for row in rows))
    assert [row["ignore_namespaces"] for row in everything(path, Defaults(ignore_namespaces=True))[0]] == [
        False,
        True,
        True,
    ]
    table = pa.table({**pa.Table.from_pylist(rows).to_pydict(), "ignore_namespaces": [True] * 3})
    (letter,) = Broker().register_many(table).rejected
    assert (letter.subscription_id, letter.kind) == ("0", "invalid_field")


def test_folders(tmp_path: Path) -> None:
    write(tmp_path / "b.txt", "/a\n/b\n")
    (tmp_path / "sub").mkdir()
    write(tmp_path / "sub" / "c.txt.gz", "/c\n")
    write(tmp_path / "a.jsonl", '{"id": "1", "query": "/a"}')
    write(tmp_path / "sub" / "d.xq", "//d")
    write(tmp_path / "notes.md", "not a subscription")
    rows, _ = everything(tmp_path)
    assert [row["subscription_id"] for row in rows] == ["1", "b.txt:1", "b.txt:2", "sub/c.txt.gz:1", "sub/d"]
    (tmp_path / "empty").mkdir()
    with pytest.raises(SubscriptionFileError, match="holds no subscription file"):
        everything(tmp_path / "empty")


def test_defaults_fill_in_what_is_not_said(tmp_path: Path) -> None:
    path = write(tmp_path / "s.yaml", YAML)
    rows, _ = everything(path, Defaults(namespaces={"q": "urn:q"}, stream="s", ignore_namespaces=True))
    assert [row["namespaces"] for row in rows] == ['{"q": "urn:q"}', '{"p": "urn:p"}'] + ['{"q": "urn:q"}'] * 2
    assert [row["stream"] for row in rows] == ["s", "s", "news", "s"]
    assert [row["ignore_namespaces"] for row in rows] == [True, True, True, False]


def test_yaml_shares_namespaces(tmp_path: Path) -> None:
    path = write(tmp_path / "s.yaml", "namespaces: {v: urn:v}\nsubscriptions:\n  - {id: 1, query: '/v:a'}\n")
    rows, _ = everything(path, Defaults(namespaces={"w": "urn:w"}))
    assert json.loads(rows[0]["namespaces"]) == {"w": "urn:w", "v": "urn:v"}


BAD_ROWS = {
    "s.jsonl": (
        '{"id": "1", "query": "/a"}\n{"id": "2"\n{"id": "3", "query": "/a", "qeury": 1}\n{"id": 4}\n',
        [2, 3, 4],
    ),
    "s.yaml": ("- {id: 1, query: /a}\n- id: 2\n  qurey: /b\n- just text\n- {id: 4, query: [a]}\n", [2, 4, 5]),
    "s.csv": ('id,query\n1,/a\n2\n"3\n3",\n4,/b\n5,/c[\n,/d\n6,/e,x\n', [3, 4, 7, 8, 9]),
    "s.txt": ("/a\n/b[\n\n/c[\n", [2, 4]),
}


@pytest.mark.parametrize("name", sorted(BAD_ROWS))
def test_bad_rows_are_refused_with_file_and_line_and_the_others_work(name: str, tmp_path: Path) -> None:
    content, lines = BAD_ROWS[name]
    path = write(tmp_path / name, content)
    broker, report = open_broker(path)
    assert "1" in broker
    assert sorted(letter.source or "" for letter in report.rejected) == sorted(f"{path}:{line}" for line in lines)
    assert all(letter.message for letter in report.rejected)


def test_bad_parquet_rows_name_their_row(tmp_path: Path) -> None:
    path = tmp_path / "s.parquet"
    pq.write_table(pa.table({"id": ["1", None, "3"], "query": ["/a", "/b", "/c["]}), path)
    _broker, report = open_broker(path)
    assert [letter.source for letter in report.rejected] == [f"{path}: row 1", f"{path}: row 2"]


BAD_FILES = {
    "s.csv": [b"", b"name,query\n1,/a\n", b"id\n1\n", b"id,query\n1,\xff\n"],
    "s.yaml": [
        b"",
        b"{}",
        b"a: [",
        b"subscriptions: 3",
        b"other: []\nsubscriptions: []",
        b"- {id: 1, id: 2, query: /a}",
    ],
    "s.jsonl": [b"\xff\xfe"],
    "s.parquet": [b"", b"PAR1 not"],
    "s.txt": [b"/a\n\xff\n"],
    "s.txt.gz": [b"not gzip"],
}


@pytest.mark.parametrize(("name", "content"), [(name, content) for name, all_ in BAD_FILES.items() for content in all_])
def test_files_that_can_not_be_read_are_one_error_that_names_them(name: str, content: bytes, tmp_path: Path) -> None:
    path = tmp_path / name
    path.write_bytes(content)
    with pytest.raises(SubscriptionFileError) as caught:
        everything(path)
    assert str(path) in str(caught.value)


def test_hostile_yaml_is_refused(tmp_path: Path) -> None:
    """Objects are never built, aliases to themselves end, and deep nesting is an error."""
    assert everything(write(tmp_path / "o.yaml", "- !!python/object/apply:os.system [ls]\n"))[1]
    with pytest.raises(SubscriptionFileError, match="nested too deeply"):
        everything(write(tmp_path / "a.yaml", "- &x {id: 1, query: [*x]}\n"))
    with pytest.raises(SubscriptionFileError):
        everything(write(tmp_path / "d.yaml", "[" * 3000))


def test_saved_indexes_among_paths(tmp_path: Path) -> None:
    text = write(tmp_path / "q.txt", "/a\n")
    saved = tmp_path / "base.sdx"
    broker = Broker()
    broker.register("base", "//b")
    broker.save(saved)
    assert (is_index(saved), is_index(text), is_index(tmp_path)) == (True, False, False)
    opened, report = open_broker([text, saved])
    assert (opened.ids(), report.registered) == (["base", "1"], 2)
    with pytest.raises(SubscriptionFileError, match="only one saved index"):
        open_broker([saved, saved.with_suffix(".other")])
    with pytest.raises(IndexFormatError):
        open_broker(write(tmp_path / "x.bin", "no index"))
    with pytest.raises(SubscriptionFileError, match="no reader"):
        everything(saved)


@needs_data
def test_half_a_million_lines_are_read_in_a_few_seconds() -> None:
    """No work for each line in Python: measured in time of the processor, which does not depend on who else works."""
    path = DATA / "yfilter-1.0" / "benchmark_simple_paths"
    (file,) = [found for found in sorted(path.iterdir()) if "500000" in found.name or "500k" in found.name.lower()][:1]
    started = time.process_time()
    rows = sum(batch.table.num_rows for batch in read(file))
    seconds = time.process_time() - started
    assert rows == 500_000
    assert seconds < 10, f"{seconds:.1f} s"
