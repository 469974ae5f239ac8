"""Joins of real documents: alerts of one gamma-ray burst, and items of feeds about one thing, against dictionaries."""

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from email.utils import parsedate_to_datetime
from functools import cache
from typing import Any

import pytest
from lxml import etree

from sardonyx import Broker, Document
from sardonyx.config import BrokerSettings, JoinSettings
from tests import libxml2
from tests.shared_data import DATA, needs_data

pytestmark = needs_data

VOEVENT = {"v": "http://www.ivoa.net/xml/VOEvent/v2.0"}
ATOM = {"a": "http://www.w3.org/2005/Atom"}
HOUR, DAY = timedelta(hours=1), timedelta(days=1)

# Facts of the data: how many pairs and triples there are.
ALERTS = 187
SAME_TRIGGER = {"followed": 912, "version 2": 894, "joined": 1824}
POSITIONS = {"X-ray": 3, "flight": 19, "ultraviolet": 1}
ITEMS = {"news": 925, "blogs": 1854}
SAME = {"link": 2, "exact": 1838, "loose": 1839, "formats": 1}


@dataclass(frozen=True)
class Item:
    """A document, when it happened, and its values by the name that a test gives them."""

    id: str
    stream: str
    when: datetime
    payload: bytes
    values: dict[str, frozenset[str]]


# --- alerts -----------------------------------------------------------------------------------------------------------


@cache
def _alerts() -> list[Item]:
    found = []
    for path in sorted((DATA / "docs" / "voevent-followups").rglob("*.xml")):
        payload = path.read_bytes()
        root = etree.fromstring(payload)
        when = datetime.fromisoformat(str(root.findtext("Who/Date"))).replace(tzinfo=UTC)
        values = {
            name: frozenset(str(param.get("value")) for param in root.iterfind(f"What/Param[@name='{name}']"))
            for name in ("TrigID", "Packet_Type")
        }
        found.append(Item(path.stem, "gcn", when, payload, values))
    return sorted(found, key=lambda item: item.when)


def _param(name: str, variable: str) -> str:
    return f"What/Param[@name='{name}']/@value->{variable}"


def _of_type(kind: int) -> str:
    return f"What/Param[@name='Packet_Type']/@value = {kind}"


TRIGGER = "gcn/*->{}[{}{}]"  # two of the packets are of version 1.1, in another namespace
QUERIES = {
    "followed": "{a} FOLLOWED BY{{t = u, 1 h}} {b}",
    "version 2": "gcn/v:VOEvent->a FOLLOWED BY{{a/{of} = b/{of}, 1 h}} gcn/v:VOEvent->b",
    "joined": "{a} JOIN{{t = u, PT60M}} {b}",
    "X-ray": "{bat} FOLLOWED BY{{t = u, 3600}} {xrt}",
    "flight": "{alert} FOLLOWED BY{{t = u, 60 min}} {flight}",
    "ultraviolet": "{bat} FOLLOWED BY{{t = u, 1 h}} {xrt} FOLLOWED BY{{u = w, 1 h}} {uvot}",
}
BLOCKS = {
    "of": "What/Param[@name='TrigID']/@value",
    "a": TRIGGER.format("a", _param("TrigID", "t"), ""),
    "b": TRIGGER.format("b", _param("TrigID", "u"), ""),
    "bat": TRIGGER.format("a", _param("TrigID", "t"), f" and {_of_type(61)}"),
    "xrt": TRIGGER.format("b", _param("TrigID", "u"), f" and {_of_type(67)}"),
    "uvot": TRIGGER.format("c", _param("TrigID", "w"), f" and {_of_type(81)}"),
    "alert": TRIGGER.format("a", _param("TrigID", "t"), f" and {_of_type(110)}"),
    "flight": TRIGGER.format("b", _param("TrigID", "u"), f" and {_of_type(111)}"),
}
SELECT = 'SELECT <burst by="{$b/@ivorn}">{$a/@ivorn, $a/Who/Date}</burst> FROM '


def _after(left: Item, right: Item, window: timedelta) -> bool:
    return timedelta(0) < right.when - left.when <= window


def _joined(
    left: Iterable[Item], right: Sequence[Item], value: str, other: str, near: Callable[[Item, Item], bool]
) -> set[tuple[str, str]]:
    """The pairs with a common value, by a dictionary of the right side."""
    by_value = defaultdict(list)
    for item in right:
        for text in item.values[other]:
            by_value[text].append(item)
    return {
        (item.id, match.id)
        for item in left
        for text in item.values[value]
        for match in by_value[text]
        if item.id != match.id and near(item, match)
    }


def _expected_alerts() -> dict[str, Counter[Any]]:
    items = _alerts()
    by_type = {
        kind: [one for one in items if one.values["Packet_Type"] == {str(kind)}] for kind in (61, 67, 81, 110, 111)
    }

    def pairs(left: Sequence[Item], right: Sequence[Item], near: Callable[[Item, Item], bool]) -> Any:
        return Counter(_joined(left, right, "TrigID", "TrigID", near))

    def follows(left: Item, right: Item) -> bool:
        return _after(left, right, HOUR)

    version_2 = [one for one in items if VOEVENT["v"].encode() in one.payload]
    x_ray = pairs(by_type[61], by_type[67], follows)
    then = pairs(by_type[67], by_type[81], follows)
    return {
        "followed": pairs(items, items, follows),
        "version 2": pairs(version_2, version_2, follows),
        "joined": pairs(items, items, lambda left, right: abs(left.when - right.when) <= HOUR),
        "X-ray": x_ray,
        "flight": pairs(by_type[110], by_type[111], follows),
        "ultraviolet": Counter((a, b, d) for a, b in x_ray for c, d in then if b == c),
    }


def _broker(queries: dict[str, str], namespaces: dict[str, str], settings: JoinSettings) -> Broker:
    broker = Broker(BrokerSettings(joins=settings))
    for key, query in queries.items():
        broker.register(key, query, language="xscl", namespaces=namespaces)
    return broker


def _documents(items: Iterable[Item], timed: bool = True) -> list[Document]:
    return [Document(one.id, one.payload, one.stream, one.when if timed else None) for one in items]


def _told(notifications: Iterable[Any]) -> dict[str, Counter[Any]]:
    told: dict[str, Counter[Any]] = defaultdict(Counter)
    for one in notifications:
        told[one.subscription_id][one.documents] += 1
    return dict(told)


def test_alerts_are_what_they_were() -> None:
    """The facts of the data, from the dictionaries."""
    expected = _expected_alerts()
    assert len(_alerts()) == ALERTS
    assert {key: sum(pairs.values()) for key, pairs in expected.items()} == SAME_TRIGGER | POSITIONS


@pytest.mark.parametrize("way", ["in order", "together", "backwards together", "by their own dates"])
def test_alerts(way: str) -> None:
    """Alerts of one trigger within an hour, given their time or saying it themselves."""
    queries = {key: SELECT + query.format_map(BLOCKS) for key, query in QUERIES.items()}
    own = way == "by their own dates"
    settings = JoinSettings(timestamps={"gcn": "/*/Who/Date"} if own else None)
    broker = _broker(queries, VOEVENT, settings)
    documents = _documents(_alerts(), timed=not own)
    if way.startswith("backwards"):
        documents.reverse()
    report = broker.publish_many(documents, together=way.endswith("together"))
    assert report.dead_letters == ()
    assert _told(report.notifications) == _expected_alerts()
    alerts = {item.id: item for item in _alerts()}
    for one in report.notifications:
        made = etree.fromstring(str(one.result))
        first, second = (etree.fromstring(alerts[name].payload) for name in one.documents[:2])
        assert (made.get("ivorn"), made.get("by")) == (first.get("ivorn"), second.get("ivorn"))
        assert made.findtext("Date") == first.findtext("Who/Date")


# --- feeds ------------------------------------------------------------------------------------------------------------


def _local(element: Any) -> str:
    return etree.QName(element).localname if isinstance(element.tag, str) else ""


def _when(item: Any) -> datetime | None:
    """The first date of an item that is one, by RFC 822 or ISO 8601."""
    for element in item:
        if _local(element) in ("pubDate", "published", "updated", "date"):
            for reader in (parsedate_to_datetime, datetime.fromisoformat):
                try:
                    found = reader((element.text or "").strip())
                except ValueError:
                    continue
                return found if found.tzinfo else found.replace(tzinfo=UTC)
    return None


def _values(item: Any) -> dict[str, frozenset[str]]:
    rss, atom = item.tag == "item", item.tag == f"{{{ATOM['a']}}}entry"
    found = {
        "link": [str(link.xpath("string()")) for link in item.iterfind("link")] if rss else [],
        "category": [str(one.xpath("string()")) for one in item.iterfind("category")] if rss else [],
        "term": [str(one.get("term")) for one in item.iterfind("{*}category[@term]")] if atom else [],
    }
    # XML's white space and the case of Unicode, as normalize-space() and lower-case() have them.
    found["loose"] = [
        " ".join(text.replace("\xa0", "\0").split()).replace("\0", "\xa0").lower() for text in found["category"]
    ]
    return {name: frozenset(texts) for name, texts in found.items()}


@cache
def _items(stream: str, folder: str) -> list[Item]:
    """The dated items of all feeds of a folder, each a document of its own, in the order of time."""
    found = []
    for path in sorted((DATA / "docs" / folder).iterdir()):
        try:
            feed = libxml2.parse(path.read_bytes())
        except etree.XMLSyntaxError:
            continue
        for number, item in enumerate(each for each in feed.iter() if _local(each) in ("item", "entry")):
            when = _when(item)
            if when is not None:
                payload = etree.tostring(item, encoding="utf-8", with_tail=False)
                found.append(Item(f"{path.stem}-{number}", stream, when, payload, _values(item)))
    return sorted(found, key=lambda item: item.when)


def _news() -> list[Item]:
    return _items("news", "feeds-news")


def _blogs() -> list[Item]:
    return _items("blogs", "feeds-smallweb")


FEEDS = {
    "link": "news/item->a[link->l] JOIN{l = m, INF} news/item->b[link->m]",
    "exact": "blogs/item->a[category->c] FOLLOWED BY{c = d, 1 d} blogs/item->b[category->d]",
    "loose": "blogs/item->a FOLLOWED BY{lower-case(normalize-space(a/category)) = "
    "normalize-space(lower-case(b/category)), P1D} blogs/item->b",
    "formats": "blogs/a:entry->a[a:category/@term->c] JOIN{c = d, 24 h} blogs/item->b[category->d]",
}


def _expected_feeds() -> dict[str, Counter[Any]]:
    news, blogs = _news(), _blogs()

    def follows(left: Item, right: Item) -> bool:
        return _after(left, right, DAY)

    return {
        "link": Counter(_joined(news, news, "link", "link", lambda *_: True)),
        "exact": Counter(_joined(blogs, blogs, "category", "category", follows)),
        "loose": Counter(_joined(blogs, blogs, "loose", "loose", follows)),
        "formats": Counter(_joined(blogs, blogs, "term", "category", lambda a, b: abs(a.when - b.when) <= DAY)),
    }


def test_feeds_are_what_they_were() -> None:
    """The facts of the data, from the dictionaries."""
    assert {"news": len(_news()), "blogs": len(_blogs())} == ITEMS
    assert {key: len(pairs) for key, pairs in _expected_feeds().items()} == SAME


@pytest.mark.parametrize("together", [False, True], ids=["in order", "together"])
def test_feeds(together: bool) -> None:
    """Items with one link, and items of one category within a day, in two formats and with loose spelling."""
    select = "SELECT <both>{$a/*[local-name() = 'title']}{$b/*[local-name() = 'title']}</both> FROM "
    broker = _broker({key: select + query for key, query in FEEDS.items()}, ATOM, JoinSettings())
    items = sorted(_news() + _blogs(), key=lambda item: item.when)
    report = broker.publish_many(_documents(items), together=together)
    assert report.dead_letters == ()
    assert _told(report.notifications) == _expected_feeds()
    titles = {item.id: etree.fromstring(item.payload) for item in items}
    for one in report.notifications:
        made = [child.xpath("string()") for child in etree.fromstring(str(one.result))]
        assert made == [
            child.xpath("string()") for name in one.documents for child in titles[name] if _local(child) == "title"
        ]


def test_feeds_in_pieces() -> None:
    """Where all that arrives late is allowed to, the order of arrival and the cuts do not matter."""
    broker = _broker(FEEDS, ATOM, replace(JoinSettings(), lateness_us=100 * 366 * 86_400 * 1_000_000, results=False))
    documents = _documents(_blogs() + _news())[::-1]
    notifications: list[Any] = []
    for start in range(0, len(documents), 97):
        report = broker.publish_many(documents[start : start + 97], together=start % 2 == 0)
        assert report.dead_letters == ()
        notifications += report.notifications
    assert _told(notifications) == _expected_feeds()
    assert {one.result for one in notifications} == {None}
