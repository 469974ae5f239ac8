"""The definition of joins against answers worked out by hand, so that it is not only checked against the engine."""

from dataclasses import replace
from random import Random

import pytest

from tests import join_runs
from tests.generators.joins import Scenario, reduced, scenario
from tests.join_queries import (
    Block,
    Content,
    Element,
    Equality,
    Message,
    Operand,
    Operator,
    Pattern,
    Query,
    Step,
    Subscription,
    variables_of,
)
from tests.join_reader import read
from tests.join_text import to_text, window_text
from tests.joins import Definition, RefusedError, canonical

S = 1_000_000


def bound(path: str, variable: str) -> tuple[Pattern]:
    """A predicate such as [.//a/b->v]."""
    steps = []
    separator = "/"
    for name in path.removeprefix("./").removeprefix(".").split("/") if path.startswith(".") else path.split("/"):
        if not name:
            separator = "//"
            continue
        steps.append(Step(separator, name))
        separator = "/"
    return (Pattern((*steps[:-1], Step(steps[-1].separator, steps[-1].test, variable=variable))),)


def block(root: str, *leaves: tuple[str, str], stream: str | None = "S", variable: str | None = None) -> Block:
    """A block such as S//root->variable[leaf->name]."""
    return Block(stream, (Step("//", root, tuple(bound(path, name) for path, name in leaves), variable),))


def equal(left: str, right: str, *normals: str) -> Equality:
    """An equality of two variables."""
    return Equality(Operand(left, normals=normals), Operand(right, normals=normals))


def join(kind: str, window_us: int | None, *equalities: Equality) -> Operator:
    """An operator."""
    return Operator(kind, equalities or (equal("a", "b"),), window_us)


ORDER = block("order", (".//sku", "a"), variable="o")
SHIP = block("ship", (".//sku", "b"), variable="s")


def order(name: str, at_us: int, sku: str = "K", stream: str | None = "S") -> Message:
    return Message(name, stream, at_us, f"<order><sku>{sku}</sku></order>")


def ship(name: str, at_us: int, sku: str = "K", stream: str | None = "S") -> Message:
    return Message(name, stream, at_us, f"<ship><sku>{sku}</sku></ship>")


def pairs(query: Query, *batches: list[Message], lateness_us: int = 0) -> list[tuple[str, ...]]:
    """The documents of all notifications of one query."""
    definition = Definition(lateness_us)
    definition.register(Subscription("q", query))
    for batch in batches:
        definition.publish(batch)
    return sorted(one.documents for one in definition.notifications())


def test_ends_of_windows() -> None:
    """FOLLOWED BY: 0 < t2 - t1 <= T; JOIN: |t1 - t2| <= T."""
    messages = [order("o", 10 * S)] + [
        ship(name, 10 * S + after)
        for name, after in {
            "far before": -10 * S - 1,
            "before": -10 * S,
            "same": 0,
            "next": 1,
            "last": 10 * S,
            "beyond": 10 * S + 1,
        }.items()
    ]
    followed = Query((ORDER, SHIP), (join("FOLLOWED BY", 10 * S),))
    assert pairs(followed, messages) == [("o", "last"), ("o", "next")]
    joined = Query((ORDER, SHIP), (join("JOIN", 10 * S),))
    assert pairs(joined, messages) == [("o", "before"), ("o", "last"), ("o", "next"), ("o", "same")]
    assert pairs(Query((ORDER, SHIP), (join("JOIN", 0),)), messages) == [("o", "same")]
    assert pairs(Query((ORDER, SHIP), (join("FOLLOWED BY", 0),)), messages) == []
    assert len(pairs(Query((ORDER, SHIP), (join("JOIN", None),)), messages)) == 6
    assert len(pairs(Query((ORDER, SHIP), (join("FOLLOWED BY", None),)), messages)) == 3


def test_late_and_repeated() -> None:
    """What is before the watermark joins nothing; what was seen is counted; one batch makes none of its own late."""
    joined = Query((ORDER, SHIP), (join("JOIN", 10 * S),))
    definition = Definition(lateness_us=2 * S)
    definition.register(Subscription("q", joined))
    assert definition.publish([order("o1", S)]).late == []
    assert definition.publish([Message("w", "S", 20 * S, "<tick/>")]).late == []
    assert definition.publish([ship("s1", 10 * S)]).late == ["s1"]
    assert definition.publish([ship("s0", 18 * S - 1)]).late == ["s0"]
    assert definition.publish([ship("s2", 18 * S)]).late == []
    assert definition.publish([order("o2", 19 * S)]).late == []
    again = definition.publish([order("o2", 19 * S), order("o1", S)])
    assert (again.late, again.repetitions) == (["o1"], 1), "what is late is late, also if it was seen"
    assert [one.documents for one in definition.notifications()] == [("o2", "s2")]
    assert pairs(joined, [Message("w", "S", 90 * S, "<t/>"), order("o", S), ship("s", S)]) == [("o", "s")]
    assert pairs(joined, [Message("w", "T", 90 * S, "<t/>")], [order("o", S), ship("s", S)]) == []


def test_own_documents() -> None:
    """A document does not join itself, nor one of its stream and id at another time; in another stream it may."""
    both = Query((block("d", ("k", "a")), block("d", ("k", "b"))), (join("JOIN", 10 * S),))
    text = "<d><k>1</k><k>1</k></d>"
    assert pairs(both, [Message("m", "S", 0, text)]) == []
    assert pairs(both, [Message("m", "S", 0, text), Message("m", "S", S, text)]) == []
    assert pairs(both, [Message("m", "S", 0, text), Message("n", "S", 0, text)]) == [("m", "n"), ("n", "m")]
    anywhere = Query((block("d", ("k", "a"), stream=None), block("d", ("k", "b"), stream=None)), (join("JOIN", S),))
    assert pairs(anywhere, [Message("m", "S", 0, text), Message("m", "T", 0, text)]) == [("m", "m"), ("m", "m")]


def test_distinct_nodes() -> None:
    """One notification for each choice of roots, or of the nodes that the constructor uses."""
    text = "<f><e><k>1</k><k>1</k></e><e><k>1</k><k>2</k></e></f>"
    other = Message("n", "S", 1, "<g><k>1</k><k>1</k></g>")
    left, right = block("e", ("k", "a"), variable="e"), block("g", ("k", "b"), variable="g")
    messages = [Message("m", "S", 0, text), other]
    assert pairs(Query((left, right), (join("JOIN", S),)), messages) == [("m", "n")] * 2
    for used, count in {(): 1, ("e",): 2, ("g",): 1, ("a",): 3, ("b",): 2, ("a", "b"): 6, ("a", "b", "e"): 6}.items():
        select = Element("r", content=tuple(Content("string", name) for name in used))
        assert pairs(Query((left, right), (join("JOIN", S),), select), messages) == [("m", "n")] * count, used


def test_all_conditions_at_once() -> None:
    """The two values have to belong to one and the same entry: the nodes are chosen together."""
    pattern = Pattern((Step("//", "e", (bound("k", "a"), bound("l", "c"))),))
    left = Block("S", (Step("/", "f", ((pattern,),), "f"),))
    right = block("g", ("k", "b"), ("l", "d"))
    query = Query((left, right), (join("JOIN", S, equal("a", "b"), equal("c", "d")),))
    right_text = "<g><k>1</k><l>2</l></g>"
    crossed = "<f><e><k>1</k><l>1</l></e><e><k>2</k><l>2</l></e></f>"
    assert pairs(query, [Message("m", "S", 0, crossed), Message("n", "S", 0, right_text)]) == []
    together = "<f><e><k>1</k><l>2</l></e></f>"
    assert pairs(query, [Message("m", "S", 0, together), Message("n", "S", 0, right_text)]) == [("m", "n")]
    apart = Block("S", (Step("/", "f", (bound(".//e/k", "a"), bound(".//e/l", "c")), "f"),))
    query = Query((apart, right), (join("JOIN", S, equal("a", "b"), equal("c", "d")),))
    assert pairs(query, [Message("m", "S", 0, crossed), Message("n", "S", 0, right_text)]) == [("m", "n")]


def test_values() -> None:
    """String-values character by character, with white space and case taken away where that is asked for."""
    text = "<order><sku><b>A</b> <!-- no -->b</sku></order>"

    def matches(other: str, *normals: str) -> bool:
        query = Query((ORDER, SHIP), (join("JOIN", S, equal("a", "b", *normals)),))
        return bool(pairs(query, [Message("o", "S", 0, text), ship("s", 0, other)]))

    assert matches("A b")
    assert not matches("A  b")
    assert not matches("a b")
    assert matches(" A \t\r\n b\n", "normalize-space")
    assert not matches("A\u00a0b", "normalize-space")
    assert matches("a B", "lower-case")
    assert not matches(" a B", "lower-case")
    assert matches(" a  B", "lower-case", "normalize-space")
    assert matches(" a  B", "normalize-space", "lower-case")


def test_positions_and_paths() -> None:
    """Positions count as in XPath; the root is the first node that is bound, what follows hangs from it."""
    text = "<r><a><k>1</k></a><a><k>2</k><k>3</k></a><a/></r>"
    wanted = {
        # //a[2]->x/k->a: the second a, both its k
        Block("S", (Step("//", "a", (("2",),), "x"), Step("/", "k", variable="a"))): {"2", "3"},
        # //a[k->a][2]: the second a that has a k
        Block("S", (Step("//", "a", (bound("k", "a"), ("2",))),)): {"2", "3"},
        # //a[3][k->a]: the third a, which has none
        Block("S", (Step("//", "a", (("3",), bound("k", "a"))),)): set(),
        # //a/k[2]->a
        Block("S", (Step("//", "a"), Step("/", "k", (("2",),), "a"))): {"3"},
        # //a[last() - 1]/k[1]->a
        Block("S", (Step("//", "a", (("last() - 1",),)), Step("/", "k", (("1",),), "a"))): {"2"},
        # /r//k->a
        Block("S", (Step("/", "r"), Step("//", "k", variable="a"))): {"1", "2", "3"},
        # /r[a->a]/none
        Block("S", (Step("/", "r", (bound("a", "a"),)), Step("/", "none"))): set(),
        # //k->a[. > 1 or ../following-sibling::a/k = 2]
        Block("S", (Step("//", "k", (("~k or . > 2 or ../following-sibling::~a/~k = 2",),), "a"),)): {"1", "3"},
    }
    for left, values in wanted.items():
        query = Query((left, block("ship", ("sku", "b"))), (join("JOIN", S),))
        found = {
            value
            for value in ("1", "2", "3", "")
            if pairs(query, [Message("m", "S", 0, text), ship("s", 0, value)]) == [("m", "s")]
        }
        assert found == values, to_text(query)


def test_attributes_texts_and_namespaces() -> None:
    """Attributes and texts are nodes too; a default namespace counts for elements only."""
    text = '<d:r xmlns:d="urn:d" k="1"><d:e d:k="2" k="3">4<d:f/>5</d:e></d:r>'
    spaces = {"": "urn:d", "p": "urn:d"}
    wanted = {
        "@k": ["1", "3"], "@p:k": ["2"], "text()": ["4", "5"], "e": ["45"], "p:e": ["45"], "*": ["", "45", "45"],
        "@*": ["1", "2", "3"], "descendant::e": ["45"], "none": [],
    }  # fmt: skip
    for test, values in wanted.items():
        query = Query(
            (Block("S", (Step("//", test, variable="a"),)),), namespaces=spaces, select=Element("r", (("v", "a"),))
        )
        definition = Definition()
        definition.register(Subscription("q", query))
        definition.publish([Message("m", "S", 0, text)])
        assert sorted(one.result for one in definition.notifications()) == [
            f'<r xmlns="urn:d" v="{v}"></r>' for v in values
        ], test


def test_chains() -> None:
    """`A op B op C` is `(A op B) op C`; what the first operator found has the later of the two timestamps."""
    third = block("bill", ("sku", "c"))

    def bill(name: str, at: int) -> Message:
        return Message(name, "S", at, "<bill><sku>K</sku></bill>")

    query = Query((ORDER, SHIP, third), (join("JOIN", 10), join("FOLLOWED BY", 5, equal("a", "c"))))
    messages = [order("o", 20), ship("s", 12), bill("p", 20), bill("q", 21), bill("r", 25), bill("t", 26)]
    assert pairs(query, messages) == [("o", "s", "q"), ("o", "s", "r")]
    fourth = Block("S", (Step("//", "bill", (bound("sku", "d"),)),))
    query = Query(
        (ORDER, SHIP, third, fourth),
        (join("JOIN", 10), join("FOLLOWED BY", 5, equal("a", "c")), join("JOIN", 4, equal("b", "d"), equal("d", "c"))),
    )
    found = [("o", "s", "q", "p"), ("o", "s", "q", "r"), ("o", "s", "r", "q"), ("o", "s", "r", "t")]
    assert pairs(query, messages) == found


def test_results() -> None:
    """`SELECT *` copies the roots; constructors copy, print and count."""
    select = Element(
        "r", (("k", "a"),), (Content("text", text="so "), Content("copy", "o"), Content("count", "s", "sku"))
    )
    for query, result in (
        (None, "<result><order><sku>K</sku></order><ship><sku>K</sku></ship></result>"),
        (select, '<r k="K">so <order><sku>K</sku></order>1</r>'),
    ):
        definition = Definition()
        definition.register(Subscription("q", Query((ORDER, SHIP), (join("JOIN", S),), query)))
        definition.publish([order("o", 0), ship("s", 0)])
        assert [one.result for one in definition.notifications()] == [canonical(result)]


def test_streams() -> None:
    """A block hears the stream that it names, else that of its subscription, else all that publishers publish."""
    anywhere = block("order", ("sku", "a"), stream=None)
    for stream, count in {None: 3, "S": 1, "T": 1}.items():
        definition = Definition()
        definition.register(Subscription("q", Query((anywhere,)), stream))
        definition.publish([order("o", 0, stream=each) for each in ("S", "T", None)])
        assert len(definition.notifications()) == count


def test_derived_streams() -> None:
    """Results are documents of the stream that PUBLISH names, at the latest time of what was joined."""
    definition = Definition()
    definition.register(Subscription("first", Query((ORDER, SHIP), (join("JOIN", 10),), publish="both")))
    bill = block("bill", ("sku", "b"))
    derived = block("order", (".//sku", "a"), stream="both")
    definition.register(Subscription("second", Query((derived, bill), (join("FOLLOWED BY", 5),))))
    definition.register(Subscription("deaf", Query((block("sku", stream=None),), select=Element("r"))))
    definition.publish([ship("s", 0)])
    definition.publish([order("o", 7)])
    definition.publish([Message("b", "S", 12, "<bill><sku>K</sku></bill>")])
    definition.publish([Message("c", "S", 13, "<bill><sku>K</sku></bill>")])
    found = definition.notifications()
    assert sorted((one.subscription_id, len(one.documents), one.batch) for one in found) == [
        ("deaf", 1, 0), ("deaf", 1, 1), ("deaf", 1, 2), ("deaf", 1, 3), ("first", 2, 1), ("second", 2, 2),
    ]  # fmt: skip
    second = next(one for one in found if one.subscription_id == "second")
    first = "<result><order><sku>K</sku></order><ship><sku>K</sku></ship></result>"
    assert second.signature == (
        "second",
        (("first", ("o", "s"), first), "b"),
        "<result><order><sku>K</sku></order><bill><sku>K</sku></bill></result>",
    )


def test_cycles() -> None:
    """The subscription that closes a cycle is refused; one that was there before stays."""

    def through(name: str, stream: str | None, publish: str | None) -> Subscription:
        return Subscription(name, Query((block("x", stream=stream),), publish=publish))

    definition = Definition()
    definition.register(through("a", "S", "d"))
    definition.register(through("b", "d", "e"))
    definition.register(through("all", None, "S2"))
    for closing in (through("c", "e", "S"), through("d", "d", "d"), through("e", "e", "d")):
        with pytest.raises(RefusedError):
            definition.register(closing)
    definition.unregister("b")
    definition.register(through("e", "e", "d"))
    with pytest.raises(RefusedError):
        definition.register(through("b", "d", "e"))
    with pytest.raises(RefusedError):
        definition.register(Subscription("f", Query((block("x", stream=None),), publish="f"), stream="f"))


def test_registered_while_published() -> None:
    """A subscription joins what was published while it was registered, and a new one of its id begins anew."""
    query = Query((ORDER, SHIP), (join("JOIN", 100),))
    definition = Definition()
    definition.publish([order("o0", 0)])
    definition.register(Subscription("q", query))
    definition.publish([order("o1", 1)])
    definition.register(Subscription("r", query))
    definition.publish([ship("s2", 2)])
    definition.unregister("q")
    definition.publish([ship("s3", 3), order("o3", 3)])
    definition.register(Subscription("r", Query((SHIP, ORDER), (join("JOIN", 100),))))
    definition.publish([ship("s4", 4)])
    definition.publish([order("o5", 5)])
    found = sorted((one.subscription_id, one.documents, one.batch) for one in definition.notifications())
    assert found == [
        ("q", ("o1", "s2"), 2),
        ("r", ("o3", "s2"), 3),
        ("r", ("o3", "s3"), 3),
        ("r", ("s4", "o5"), 5),
    ]


def test_spellings() -> None:
    """Texts say what the structures hold, and a seed decides their spelling."""
    left = Block("my stream", (Step("//", "book", (("price > 1 or @k",), bound(".//author", "a")), "b"),))
    right = Block(None, (Step("/", "x", (("1",),)), Step("//", "blog", (bound("author", "c"),), "d")))
    query = Query((left, right), (join("FOLLOWED BY", 604_800 * S, equal("a", "c", "lower-case")),), publish="reviews")
    assert to_text(query) == (
        'SELECT * FROM "my stream"//book->b[price > 1 or @k][.//author->a] '
        "FOLLOWED BY{lower-case(a) = lower-case(c), 604800000000 us} /x[1]//blog->d[author->c] PUBLISH reviews"
    )
    assert to_text(query, Random(5)) == to_text(query, Random(5))
    assert len({to_text(query, Random(seed)) for seed in range(50)}) > 40
    assert any("b//author" in to_text(query, Random(seed)) for seed in range(50)), "relative paths in equalities"
    written = {window_text(604_800 * S, Random(seed)) for seed in range(200)}
    assert {"P1W", "604800", "7 d", "168h", "604800.0 s"} <= written
    assert window_text(5_400 * S + 1, None) == "5400000001 us"
    assert {window_text(5_400 * S + 1, Random(seed)) for seed in range(99)} >= {"PT1H30M0.000001S", "5400.000001"}
    assert variables_of(left.steps) == ["b", "a"]


def test_scenarios_are_decided_by_their_seed() -> None:
    """The same seed gives the same scenario, and different seeds different ones."""
    assert str(scenario(7)) == str(scenario(7))
    assert len({str(scenario(seed)) for seed in range(50)}) == 50


def test_texts_are_read_as_they_were_written() -> None:
    """What the writer makes of a structure, in any spelling, the reader reads as one that means the same."""
    for seed in range(60):
        written = scenario(seed)
        actions = []
        for action in written.actions:
            if action.subscription is not None:
                query = read(action.text, action.subscription.query.namespaces)
                select = action.subscription.query.select  # of constructors, the reader takes only the variables
                query = replace(query, select=select)
                action = replace(action, subscription=replace(action.subscription, query=query))
            actions.append(action)
        again = replace(written, actions=tuple(actions))
        assert join_runs.expected(written).difference(join_runs.expected(again)) is None, seed


def test_reducer() -> None:
    """A scenario is cut down to what makes it fail: here two documents and one subscription that joins them."""

    def fails(one: Scenario) -> bool:
        try:
            told = join_runs.expected(one).told
        except (StopIteration, KeyError):
            return False
        return any(len(documents) == 2 for counter in told for _, documents, _ in counter)

    found = next(one for one in map(scenario, range(20, 200)) if fails(one))
    smallest = reduced(found, fails)
    assert len(smallest.messages) == 2
    assert sum(action.subscription is not None for action in smallest.actions) == 1
    assert "register" in str(smallest)
    assert len(str(smallest)) < 500
