"""Workloads: documents are valid, queries hold somewhere, sets say what they give, and all of it is repeatable."""

import hashlib
import itertools
import json
import re
import subprocess
import sys
from dataclasses import asdict
from pathlib import Path

import pytest
from lxml import etree

from sardonyx import Broker
from sardonyx.errors import MissingExtraError, SettingsError, WorkloadError
from sardonyx.subscriptions import open_broker
from sardonyx.workloads import (
    SETS,
    DocumentShape,
    QueryShape,
    TransformationShape,
    describe,
    documents,
    load,
    queries,
    stock,
    transformations,
)
from sardonyx.workloads import dtd as dtd_module
from sardonyx.workloads.files import DocumentsAs, SubscriptionsAs, write
from tests.shared_data import DATA, needs_data

PACKAGED = {"bib": ["bib"], "book": ["book"], "psd": ["psd"], "nasa": ["nasa"], "feeds": ["rss", "atom"]}
FOLDER = Path(dtd_module.__file__).parent / "data"

ODD = """
<!ELEMENT r (((a, b)+ | c?), (d | r)*, any)>
<!ATTLIST r key ID #REQUIRED to IDREFS #IMPLIED kind (x | y) "x" fixed CDATA #FIXED "f g"
            names NMTOKENS #REQUIRED>
<!ELEMENT a EMPTY> <!ATTLIST a of IDREF #REQUIRED>
<!ELEMENT b (#PCDATA | a | r)*>
<!ELEMENT c (b, b?)>
<!ELEMENT d (#PCDATA)>
<!ELEMENT any ANY>
"""
"""Every kind of content and attribute, and a recursion."""


def depth(element: etree._Element) -> int:
    return 1 + max((depth(child) for child in element), default=0)


def written(folder: Path, text: str) -> Path:
    file = folder / "given.dtd"
    file.write_text(text)
    return file


class TestDocuments:
    @pytest.mark.parametrize("name", PACKAGED)
    @pytest.mark.parametrize("seed", range(5))
    def test_those_of_the_sets_are_valid(self, name: str, seed: int) -> None:
        declared = [etree.DTD(str(FOLDER / f"{file}.dtd")) for file in PACKAGED[name]]
        shape = DocumentShape.from_mapping(describe(name).documents)
        for document in documents(name, count=40, seed=seed):
            root = etree.fromstring(document)
            assert any(one.validate(root) for one in declared), [one.error_log for one in declared]
            assert depth(root) <= shape.doc_depth

    @pytest.mark.parametrize("levels", [2, 3, 6, 12])
    def test_those_of_an_odd_dtd_are_valid_and_bounded(self, levels: int, tmp_path: Path) -> None:
        file = written(tmp_path, ODD)
        declared = etree.DTD(str(file))
        deepest = 0
        for seed in range(60):
            shape = DocumentShape(doc_depth=levels, max_repeats=2)
            root = etree.fromstring(next(documents(file, shape, 1, seed)))
            assert declared.validate(root), declared.error_log
            deepest = max(deepest, depth(root))
        assert deepest == levels

    @needs_data
    @pytest.mark.parametrize(
        "name", ["nitf/nitf-2-5.dtd", "xhtml/xhtml1-strict.dtd", "xmark/auction.dtd", "newsml/NewsMLv1.2.dtd"]
    )
    def test_those_of_real_dtds_are_valid(self, name: str) -> None:
        declared = etree.DTD(str(DATA / "dtd" / name))
        for document in documents(DATA / "dtd" / name, DocumentShape(doc_depth=6), 30, seed=3):
            root = etree.fromstring(document)
            assert declared.validate(root), declared.error_log
            assert depth(root) <= 6

    def test_parameters_have_their_effect(self, tmp_path: Path) -> None:
        file = written(
            tmp_path, "<!ELEMENT l (i*, o?)><!ELEMENT i (#PCDATA)><!ELEMENT o EMPTY><!ATTLIST i k CDATA #IMPLIED>"
        )

        def made(**parameters: object) -> list[etree._Element]:
            return [etree.fromstring(d) for d in documents(file, DocumentShape.from_mapping(parameters), 300)]

        plain = made(max_repeats=5, max_value=9, implied=0.5)
        assert {len(root.findall("i")) for root in plain} == set(range(6))
        assert {text for root in plain for text in root.xpath("i/text()")} == {str(n) for n in range(1, 10)}
        assert 0.35 < sum(len(root.xpath("i/@k")) for root in plain) / sum(len(root) for root in plain) < 0.6
        assert not any(root.xpath("i/@k | o") for root in made(implied=0, optional=0))
        assert all(root.xpath("o") for root in made(optional=1))
        assert {len(root.findall("i")) for root in made(repeats={"i": [2, 3]})} == {2, 3}
        skewed = [text for root in made(value_skew=2, max_value=9) for text in root.xpath("i/text()")]
        assert skewed.count("1") > 2 * skewed.count("2") > 0

    def test_fixed_values_are_escaped(self, tmp_path: Path) -> None:
        # Not in the DTD above, because libxml2 finds values with such characters different from themselves.
        file = written(tmp_path, """<!ELEMENT a EMPTY><!ATTLIST a k CDATA #FIXED 'f &amp; "g" &lt; h'>""")
        document = next(documents(file, DocumentShape(implied=1), 1))
        assert etree.fromstring(document).get("k") == 'f & "g" < h'

    def test_they_are_made_one_at_a_time(self) -> None:
        assert len(list(itertools.islice(documents("bib", count=10**12), 3))) == 3

    @pytest.mark.parametrize(
        ("text", "words"),
        [
            ("<!ELEMENT a (a)>", "'a' requires itself"),
            ("<!ELEMENT a (b)>", "'b', which is not declared"),
            ("<!ELEMENT a (b)> <!ELEMENT b (c)> <!ELEMENT c EMPTY>", "has 3 levels; doc_depth is 2"),
            ("<!ELEMENT a EMPTY", "is not a DTD: line 1"),
            ("<!ELEMENT a (b)> <!ELEMENT x:b EMPTY> <!ELEMENT y:b EMPTY>", "x:b from y:b"),
            ("<!ELEMENT a EMPTY> <!ATTLIST a e ENTITY #REQUIRED>", "unparsed entity"),
            ("<!ELEMENT a EMPTY> <!ATTLIST a e IDREF #REQUIRED>", "refer to an ID"),
        ],
    )
    def test_what_can_not_be_generated_is_said(self, text: str, words: str, tmp_path: Path) -> None:
        with pytest.raises(WorkloadError, match=words):
            list(documents(written(tmp_path, text), DocumentShape(doc_depth=2), 1))

    def test_without_lxml_the_extra_is_named(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setitem(sys.modules, "lxml", None)
        with pytest.raises(MissingExtraError, match=r"sardonyx\[workloads\]"):
            next(documents("bib"))
        assert next(stock.messages(stock.calibrate()))


class TestQueries:
    SAMPLES = tuple(documents("psd", count=20))

    @pytest.mark.parametrize(
        "shape",
        [
            QueryShape(predicates=2, skip=0.5),
            QueryShape(nested_paths=1),
            QueryShape(predicates=3, branches=1, conjunction=1, equality=0),
            QueryShape(predicates=2, branches=0.5, negation=1, equality=0.5, conjunction=0.4, disjunction=0.4),
            QueryShape(predicates=1.5, nested_paths=1, zipf=1, branches=0.5, distinct=False),
        ],
    )
    @pytest.mark.parametrize("sample", ["psd", "feeds", "book"])
    def test_each_is_accepted_and_true_of_a_sample(self, shape: QueryShape, sample: str) -> None:
        workload = load(sample, documents=200, subscriptions=400, query_shape=asdict(shape))
        broker = Broker()
        assert broker.register_many(workload.batches()).rejected == ()
        found = set(itertools.chain.from_iterable(broker.match_batch(list(workload.documents)).ids()))
        assert found == set(broker.ids())

    def test_each_predicate_is_true_somewhere_for_lxml(self) -> None:
        shape = QueryShape(predicates=1, branches=0.5, equality=0.3, wildcard=0, descendant=0, negation=0.3)
        roots = [etree.fromstring(sample) for sample in self.SAMPLES]
        for query in queries(self.SAMPLES, shape, 200):
            assert query.count("[") >= 1
            assert any(root.getroottree().xpath(query) for root in roots), query

    def test_probabilities_of_zero_and_one(self) -> None:
        none = list(queries(self.SAMPLES, QueryShape(wildcard=0, descendant=0, depth=7, distinct=False), 200))
        assert not any("*" in query or "//" in query for query in none)
        every = list(queries(self.SAMPLES, QueryShape(wildcard=1, descendant=1, skip=0, distinct=False), 200))
        assert all(set(query) == {"/", "*"} and query.count("//") == query.count("*") for query in every)
        skipped = list(queries(self.SAMPLES, QueryShape(wildcard=0, descendant=1, distinct=False), 200))
        assert all(query.count("/") <= 2 for query in skipped)

    def test_depth_bounds_the_path(self) -> None:
        shape = QueryShape(depth=3, wildcard=0, descendant=0, distinct=False)
        assert {query.count("/") for query in queries(self.SAMPLES, shape, 500)} == {1, 2, 3}

    @pytest.mark.parametrize("mean", [1.15, 10.45])
    def test_the_mean_number_of_predicates(self, mean: float) -> None:
        made = list(queries("psd", QueryShape(depth=7, predicates=mean, branches=1, conjunction=1), 2000))
        assert sum(query.count("=") for query in made) / len(made) == pytest.approx(mean, rel=0.02)

    def test_connectives_and_comparisons_are_used(self) -> None:
        def text(**parameters: float) -> str:
            shape = QueryShape(predicates=4, branches=1, **parameters)  # type: ignore[arg-type]
            return re.sub('"[^"]*"', "", "\n".join(queries(self.SAMPLES, shape, 200)))

        assert " and " not in text()
        assert " or " not in text(conjunction=1)
        assert "][" not in text(disjunction=0.5, conjunction=0.5)
        assert "not(" in text(negation=0.5)
        assert all(sign in text(equality=0) for sign in ("<", ">", "<=", ">=", "!=", "contains("))
        assert not any(sign in text(equality=1) for sign in ("<", ">", "!=", "contains("))

    def test_zipf_prefers_common_names(self) -> None:
        def share(zipf: float) -> float:
            shape = QueryShape(depth=3, wildcard=0, descendant=0, zipf=zipf, distinct=False)
            made = list(queries(self.SAMPLES, shape, 2000))
            return sum("/reference" in query or "/feature" in query for query in made) / len(made)

        assert share(2.0) > 1.5 * share(0.0) > 0

    def test_distinct(self) -> None:
        made = list(queries(self.SAMPLES, QueryShape(predicates=1), 2000))
        assert len(set(made)) == 2000
        with pytest.raises(WorkloadError, match="only 2 distinct queries"):
            list(queries([b"<a><b/></a>"], QueryShape(wildcard=0, descendant=0), 3))
        assert len(list(queries([b"<a><b/></a>"], QueryShape(distinct=False), 3))) == 3

    def test_quotes_in_values(self) -> None:
        sample = b"""<a x="it's" y='say "so"' z="&quot;both&apos;s&quot;" l="two&#10;lines"/>"""
        made = set(queries([sample], QueryShape(predicates=1, wildcard=0), 2))
        assert made == {"""/a[@x="it's"]""", """/a[@y='say "so"']"""}

    def test_namespaces_get_prefixes(self) -> None:
        workload = load("feeds", documents=50, subscriptions=200)
        assert dict(workload.namespaces()) == {
            "ns1": "http://www.w3.org/2005/Atom",
            "dc": "http://purl.org/dc/elements/1.1/",
        }

    @pytest.mark.parametrize("sample", [[], [b"<a>"]])
    def test_bad_samples(self, sample: list[bytes]) -> None:
        with pytest.raises(WorkloadError, match="sample"):
            list(queries(sample))

    @needs_data
    def test_two_predicates_on_nitf_match_about_one_in_a_hundred(self) -> None:
        samples = [file.read_bytes() for file in sorted((DATA / "yfilter-1.0" / "docs-500").glob("*.xml"))]
        shape = QueryShape(depth=1000, predicates=2, descendant=0.2, wildcard=0.1)
        made = list(queries(samples, shape, 5000))
        assert all(query.count("[") == 2 for query in made)
        broker = Broker()
        broker.register_many(enumerate(made))
        share = broker.match_batch(samples).matches.num_rows / len(samples) / len(made)
        assert 0.005 < share < 0.015

    @needs_data
    def test_nested_paths_on_nitf(self) -> None:
        workload = load(
            "nitf", dtd=DATA / "dtd" / "nitf" / "nitf-2-5.dtd", documents=50, subscriptions=500, kind="nested"
        )
        assert all(query.count("[") == 1 and "=" not in query for query in workload.subscriptions)


class TestTransformations:
    SHAPES = (
        TransformationShape(),
        TransformationShape(skip=0.5, predicates=0, returns=1),
        TransformationShape(predicates=1.5, equality=0, returns=1.5, wildcard=0.3, descendant=0.3),
        TransformationShape(predicates=1, equality=0.5, order_by=1, nested=0.5, aggregates=0.5, distinct=False),
    )

    @pytest.mark.parametrize("shape", SHAPES)
    @pytest.mark.parametrize("sample", ["bib", "book", "psd", "feeds", "bib-flwr", "book-flwr"])
    def test_each_is_accepted_and_has_a_result_for_a_sample(self, shape: TransformationShape, sample: str) -> None:
        samples = list(documents(sample, count=100))
        made = list(transformations(samples, shape, 200))
        broker = Broker()
        namespaces = {"namespaces": dict(load(sample, samples=samples).namespaces())}
        rows = [{"id": str(row), "query": query, "language": "xquery", **namespaces} for row, query in enumerate(made)]
        assert broker.register_many(rows).rejected == ()
        report = broker.match_batch(samples)
        assert report.errors.num_rows == 0, report.errors.to_pylist()[:3]
        assert set(itertools.chain.from_iterable(report.ids())) == set(broker.ids())

    @pytest.mark.parametrize("name", ["bib-flwr", "book-flwr"])
    def test_the_sets_have_results_for_other_documents_too(self, name: str) -> None:
        workload = load(name, documents=600, subscriptions=500, document_shape={"max_value": 3}, seed=9)
        assert workload.language == "xquery"
        broker = Broker()
        assert broker.register_many(workload.batches()).rejected == ()
        report = broker.match_batch(list(workload.documents)[200:])
        assert report.errors.num_rows == 0
        assert len(set(itertools.chain.from_iterable(report.ids()))) > 400

    def test_the_parameters(self) -> None:
        def made(**parameters: float) -> list[str]:
            shape = TransformationShape.from_mapping({"wildcard": 0, "descendant": 0, "distinct": False, **parameters})
            return list(transformations("bib-flwr", shape, 400))

        form = re.compile(r"<result>\{for \$v in (/\w+)+( where .+)? return <item>(\{\$v(/\w+)+\})+</item>\}</result>")
        plain = made()
        assert all(form.fullmatch(query) for query in plain)
        assert {query.count("=") for query in plain} == {2}
        assert not any("where" in query or "order by" in query for query in made(predicates=0))
        mean = sum(query.count("{$v") for query in made(returns=2.5)) / 400
        assert mean == pytest.approx(2.5, abs=0.1)
        assert {query.count("/") for query in made(depth=2, predicates=0, returns=1)} == {4}
        assert all(query.count("{for $w in $v/") == 1 for query in made(nested=1))
        assert 100 < sum("order by" in query for query in made(order_by=0.5)) < 300
        aggregated = "".join(made(aggregates=1))
        assert "{$v" not in aggregated
        assert all(f"{{{name}($v" in aggregated for name in ("count", "sum", "min", "max", "avg"))
        assert all(sign in "".join(made(equality=0)) for sign in ("<", "<=", ">", ">=", "!="))
        assert "*" in "".join(made(wildcard=0.2)) and "//" in "".join(made(descendant=0.2))

    def test_fewer_notifications_with_a_wider_range_of_values(self) -> None:
        def share(max_value: int) -> float:
            shape = {"predicates": 1}
            given = {"max_value": max_value}
            workload = load("bib-flwr", documents=100, subscriptions=500, document_shape=given, query_shape=shape)
            broker = Broker()
            broker.register_many(workload.batches())
            return broker.match_batch(list(workload.documents)).matches.num_rows

        assert share(5) > 2 * share(50) > 0

    def test_numbers_are_compared_where_all_are(self) -> None:
        samples = [b"<a><n>1</n><t>2</t><o k='3'/></a>", b"<a><n>4</n><t>x</t><o k=''/></a>", b"<a><n>5</n></a>"]
        shape = TransformationShape(predicates=1, returns=1, equality=0, wildcard=0, descendant=0, distinct=False)
        text = "\n".join(transformations(samples, shape, 200))
        assert re.search(r"\$v/n[<>]=?[145]\b", text)
        assert not re.search(r"\$v/(t|o/@k)(<|>|!=\d)", text)

    def test_texts_are_literals(self) -> None:
        samples = [b"<a><t>R&amp;D</t></a>", b"<a><t>say &quot;so&quot;</t></a>"]
        shape = TransformationShape(predicates=1, returns=1, wildcard=0, descendant=0)
        made = set(transformations(samples, shape, 2))
        assert {re.search("where (.*) return", query).group(1) for query in made} == {  # type: ignore[union-attr]
            '$v/t="R&amp;D"',
            "$v/t='say \"so\"'",
        }
        broker = Broker()
        broker.register_many({"id": query, "query": query, "language": "xquery"} for query in made)
        assert [len(ids) for ids in broker.match_batch(samples).ids()] == [1, 1]

    @pytest.mark.parametrize(
        ("samples", "parameters", "words"),
        [
            ([b"<a/>"], {}, "only 0 distinct transformations"),
            ([b"<a><b/></a>"], {"predicates": 0, "returns": 1, "wildcard": 0}, "only 1 distinct transformations"),
            ([b"<a><b>1</b></a>"], {"nested": 1}, "only 0 distinct transformations"),
        ],
    )
    def test_when_there_are_no_more(self, samples: list[bytes], parameters: dict[str, float], words: str) -> None:
        with pytest.raises(WorkloadError, match=words):
            list(transformations(samples, TransformationShape.from_mapping(parameters), 2))

    def test_bad_parameters(self) -> None:
        with pytest.raises(SettingsError, match="depth is 1"):
            TransformationShape(depth=1)
        with pytest.raises(SettingsError, match="unknown parameter 'branches'"):
            load("bib-flwr", query_shape={"branches": 1})

    @needs_data
    def test_those_of_nitf(self) -> None:
        dtd = DATA / "dtd" / "nitf" / "nitf-2-5.dtd"
        workload = load("nitf-flwr", dtd=dtd, documents=60, subscriptions=500)
        broker = Broker()
        assert broker.register_many(workload.batches()).rejected == ()
        report = broker.match_batch(list(workload.documents))
        assert report.errors.num_rows == 0
        assert report.matches.num_rows > 0


class TestStock:
    @pytest.mark.parametrize(("subscriptions", "notifications"), [(1000, 1000), (20_000, 100_000), (20_000, 1_000_000)])
    def test_as_many_notifications_as_expected(self, subscriptions: int, notifications: int) -> None:
        workload = load("stock", documents=10_000, subscriptions=subscriptions, notifications=notifications, seed=7)
        assert workload.notifications == pytest.approx(notifications)
        broker = Broker()
        assert broker.register_many(workload.batches()).rejected == ()
        found = broker.match_batch(list(workload.documents)).matches.num_rows
        assert found == pytest.approx(notifications, rel=0.1)

    def test_every_pair(self) -> None:
        workload = load("stock", documents=20, subscriptions=30, notifications=600)
        broker = Broker()
        broker.register_many(workload.batches())
        assert broker.match_batch(list(workload.documents)).matches.num_rows == 600

    def test_the_form(self) -> None:
        query = next(iter(load("stock").subscriptions))
        assert query.startswith('/stock[symbol="S')
        assert [query.count(sign) for sign in (" and ", "price>=", "price<=", "volume>=", "volume<=")] == [
            4,
            1,
            1,
            1,
            1,
        ]

    @pytest.mark.parametrize(
        "given", [{"notifications": 0}, {"notifications": 11.0}, {"messages": 0}, {"notifications": 1e-12}]
    )
    def test_what_no_market_gives(self, given: dict[str, float]) -> None:
        with pytest.raises(SettingsError, match="it must be"):
            stock.calibrate(**{"messages": 2, "subscriptions": 5, **given})  # type: ignore[arg-type]


class TestSets:
    @pytest.mark.parametrize("name", [name for name in SETS if not name.startswith("nitf")])
    def test_the_same_seed_gives_the_same_bytes(self, name: str) -> None:
        code = (
            "import hashlib; from sardonyx.workloads import load\n"
            f"w = load({name!r}, documents=30, subscriptions=300, seed=5)\n"
            "print(hashlib.sha256(b'\\n'.join(w.documents) + '\\n'.join(w.subscriptions).encode()).hexdigest())"
        )
        there = subprocess.run(
            [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60,
        ).stdout.strip()  # fmt: skip
        workload = load(name, documents=30, subscriptions=300, seed=5)
        for _ in range(2):
            text = b"\n".join(workload.documents) + "\n".join(workload.subscriptions).encode()
            assert hashlib.sha256(text).hexdigest() == there
        other = load(name, documents=30, subscriptions=300, seed=6)
        assert list(other.documents) != list(workload.documents)
        assert list(other.subscriptions) != list(workload.subscriptions)

    def test_records(self) -> None:
        for document in load("psd", documents=5, records=3).documents:
            assert document.count(b"<ProteinEntry") == 3

    def test_depths_as_in_the_literature(self) -> None:
        assert max(depth(etree.fromstring(document)) for document in documents("psd", count=50)) == 7
        assert max(depth(etree.fromstring(document)) for document in documents("nasa", count=50)) == 8

    @needs_data
    def test_psd_has_the_names_of_the_real_entries(self) -> None:
        def paths(texts: list[bytes]) -> set[str]:
            roots = [etree.fromstring(text) for text in texts]
            return {
                "/".join([*(a.tag for a in reversed(list(e.iterancestors()))), e.tag])
                for r in roots
                for e in r.iter("*")
            }

        real = paths([file.read_bytes() for file in (DATA / "docs" / "psd").glob("*.xml")])
        assert real == paths(list(documents("psd", count=200)))

    @pytest.mark.parametrize(
        ("name", "options", "words"),
        [
            ("stocks", {}, "there is no set 'stocks'"),
            ("psd", {"kind": "flat"}, "no queries of kind 'flat'; it has bushy-1.15, bushy-10.45"),
            ("psd", {"notifications": 5}, "only the set 'stock'"),
            ("stock", {"records": 5}, "takes no records"),
            ("stock", {"kind": "paths"}, "it has ranges"),
            ("book", {"records": 5}, "do not consist of records"),
            ("book", {"document_shape": {"depth": 5}}, "unknown parameter 'depth'"),
            ("book", {"document_shape": {"repeats": {"p": 5}}}, "repeats of 'p' is 5"),
            ("book", {"query_shape": {"wildcard": 1.5}}, "wildcard is 1.5"),
            ("book", {"query_shape": {"conjunction": 0.8, "disjunction": 0.8}}, "together they must be at most 1"),
            ("nitf", {"samples": [b"<nitf/>"], "documents": 2}, "only the 1 samples"),
            ("book", {"subscriptions": -1}, "subscriptions is -1"),
        ],
    )
    def test_what_does_not_apply_is_said(self, name: str, options: dict[str, object], words: str) -> None:
        with pytest.raises(SettingsError, match=words):
            load(name, **options)  # type: ignore[arg-type]

    def test_nitf_asks_for_its_dtd(self) -> None:
        with pytest.raises(WorkloadError, match="DTD of nitf is not part of this package"):
            load("nitf")

    def test_samples_are_the_documents_where_there_is_no_dtd(self) -> None:
        samples = [b"<nitf id='1'/>", b"<nitf id='2'/>"]
        workload = load("nitf", samples=samples, subscriptions=2)
        assert list(workload.documents) == samples


class TestFiles:
    @pytest.mark.parametrize("form", ["txt", "csv", "jsonl", "parquet"])
    def test_subscriptions_are_read_back(self, form: SubscriptionsAs, tmp_path: Path) -> None:
        workload = load("bib", documents=20, subscriptions=300, query_shape={"predicates": 2, "equality": 0.5})
        done = write(workload, tmp_path / "new", "xml", form)
        broker, report = open_broker(done.subscriptions)
        assert report.rejected == ()
        direct = Broker()
        direct.register_many(workload.batches())
        made = list(workload.documents)
        read = [file.read_bytes() for file in sorted(done.documents.iterdir())]
        assert read == made
        assert broker.match_batch(read).ids() == direct.match_batch(made).ids()
        assert (done.document_count, done.subscription_count, done.document_bytes) == (20, 300, sum(map(len, made)))

    @pytest.mark.parametrize("form", ["jsonl", "csv", "parquet"])
    def test_prefixes_are_written(self, form: SubscriptionsAs, tmp_path: Path) -> None:
        workload = load("feeds", documents=20, subscriptions=100)
        broker, report = open_broker(write(workload, tmp_path / "new", "xml", form).subscriptions)
        assert (len(broker), report.rejected) == (100, ())
        with pytest.raises(SettingsError, match="txt can not bind"):
            write(workload, tmp_path / "other", "xml", "txt")
        assert [file.name for file in tmp_path.iterdir()] == ["new"]

    @pytest.mark.parametrize("form", ["jsonl", "csv", "parquet"])
    def test_transformations_are_written(self, form: SubscriptionsAs, tmp_path: Path) -> None:
        workload = load("bib-flwr", documents=20, subscriptions=100)
        broker, report = open_broker(write(workload, tmp_path / "new", "xml", form).subscriptions)
        assert (len(broker), report.rejected) == (100, ())
        assert broker.match_batch(list(workload.documents)).results()
        with pytest.raises(SettingsError, match="txt holds XPath"):
            write(workload, tmp_path / "other", "xml", "txt")

    @pytest.mark.parametrize("form", ["jsonl", "parquet"])
    def test_documents_in_one_file(self, form: DocumentsAs, tmp_path: Path) -> None:
        import pyarrow.parquet

        workload = load("stock", documents=25, subscriptions=1, notifications=1)
        file = write(workload, tmp_path / "new", form).documents
        if form == "jsonl":
            rows = [json.loads(line) for line in file.read_text().splitlines()]
        else:
            rows = pyarrow.parquet.read_table(file).to_pylist()
        payloads = [row["payload"].encode() if isinstance(row["payload"], str) else row["payload"] for row in rows]
        assert payloads == list(workload.documents)
        assert [row["document_id"] for row in rows] == [str(number) for number in range(1, 26)]

    def test_a_full_folder_is_left_alone(self, tmp_path: Path) -> None:
        (tmp_path / "mine.txt").write_text("mine")
        with pytest.raises(SettingsError, match="exists already"):
            write(load("stock", documents=1, subscriptions=1, notifications=1), tmp_path)
        assert [file.name for file in tmp_path.iterdir()] == ["mine.txt"]

    def test_an_interrupt_leaves_nothing(self, tmp_path: Path) -> None:
        def interrupt(done: int) -> None:
            raise KeyboardInterrupt

        with pytest.raises(KeyboardInterrupt):
            write(
                load("stock", documents=1000, subscriptions=1, notifications=9), tmp_path / "new", on_progress=interrupt
            )
        assert list(tmp_path.iterdir()) == []
