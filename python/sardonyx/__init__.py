"""Sardonyx: XML publish/subscribe.

Register many standing queries (subscriptions: filters in XPath 1.0, transformations in XQuery), hand in XML documents,
and hear which subscriptions each document satisfies and what transformations make of it. `Broker` does it in process;
`sardonyx.spark` does the same in Spark jobs and streams; the command `sardonyx` does it from the shell.

>>> from sardonyx import Broker
>>> broker = Broker()
>>> broker.register("expensive", "//price[. > 100]")
>>> broker.match("<order><price>120</price></order>")
['expensive']
"""

from sardonyx import errors
from sardonyx._core import __version__
from sardonyx.broker import Broker
from sardonyx.config import BrokerSettings, Limits, XPushSettings
from sardonyx.errors import SardonyxError
from sardonyx.explanation import Explanation
from sardonyx.model import DeadLetter, Document, MatchedNode, Notification, Subscription
from sardonyx.reports import MatchReport, MatchResult, PublishReport, RegisterReport
from sardonyx.subscriptions import open_broker

__all__ = [
    "Broker",
    "BrokerSettings",
    "DeadLetter",
    "Document",
    "Explanation",
    "Limits",
    "MatchReport",
    "MatchResult",
    "MatchedNode",
    "Notification",
    "PublishReport",
    "RegisterReport",
    "SardonyxError",
    "Subscription",
    "XPushSettings",
    "__version__",
    "errors",
    "open_broker",
]
