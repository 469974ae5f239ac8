"""Stock messages and subscriptions to them, of which the expected number of notifications is a parameter.

Messages are flat and small; a subscription is one equality on the symbol and four comparisons that bound price and
volume, as in Tian et al., "Implementing a scalable XML publish/subscribe system using relational database systems"
(SIGMOD 2004, section 5.1), where 10,000 messages give from 1,000 to 1,000,000 notifications.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from math import sqrt

from sardonyx.errors import SettingsError
from sardonyx.workloads.draws import Draws

__all__ = ["Market", "calibrate", "messages", "subscriptions"]

_VALUES = 10_000
"""Prices and volumes are whole numbers from 1 to this, all equally likely."""

_MOST_SYMBOLS = 1000
_RANGE_SHARE = 0.25
"""Share of one symbol's messages that a subscription should at most hear of, so that its ranges stay ranges."""


@dataclass(frozen=True, slots=True)
class Market:
    """How many messages and subscriptions there are, and how selective a subscription is."""

    messages: int
    """How many messages are published."""
    subscriptions: int
    """How many subscriptions there are."""
    symbols: int
    """How many symbols there are, all equally likely."""
    width: float
    """Mean number of prices, and of volumes, that a subscription's range holds, of 10,000."""

    @property
    def notifications(self) -> float:
        """Expected number of notifications of all messages together."""
        return self.messages * self.subscriptions / self.symbols * (self.width / _VALUES) ** 2


def calibrate(messages: int = 10_000, subscriptions: int = 10_000, notifications: float | None = None) -> Market:
    """The market in which so many messages and subscriptions give so many notifications, in expectation.

    Without a number of notifications it is 10 a message, or all pairs if there are fewer.

    With p the probability that a message satisfies a subscription, the number of symbols is 1/4p, at most 1,000, and
    what is then left to be selected is shared by the two ranges equally. Raises `SettingsError` where no market does.

    >>> market = calibrate(messages=10_000, subscriptions=1_000_000, notifications=1_000_000)
    >>> market.symbols, round(market.width), round(market.notifications)
    (1000, 3162, 1000000)
    """
    for name, value in (("messages", messages), ("subscriptions", subscriptions)):
        if value < 1:
            raise SettingsError(f"{name} is {value}; it must be at least 1")
    pairs = messages * subscriptions
    if notifications is None:
        notifications = min(10 * messages, pairs)
    if not 0 < notifications <= pairs:
        raise SettingsError(f"notifications is {notifications:g}; it must be above 0 and at most {pairs}, every pair")
    share = notifications / pairs
    symbols = max(1, min(_MOST_SYMBOLS, int(_RANGE_SHARE / share)))
    width = sqrt(share * symbols) * _VALUES
    if width < 1:
        least = pairs / _MOST_SYMBOLS / _VALUES**2
        raise SettingsError(
            f"notifications is {notifications:g}; for {messages} messages and {subscriptions} subscriptions it must be "
            f"at least {least:g}"
        )
    return Market(messages, subscriptions, symbols, width)


def messages(market: Market, seed: int = 1) -> Iterator[bytes]:
    """The messages.

    >>> next(messages(calibrate()))
    b'<stock><symbol>S84</symbol><price>1505</price><volume>9667</volume></stock>'
    """
    random = Draws(seed, "stock messages").random
    symbols = market.symbols
    for _ in range(market.messages):
        symbol, price, volume = int(random() * symbols), int(random() * _VALUES), int(random() * _VALUES)
        yield b"<stock><symbol>S%d</symbol><price>%d</price><volume>%d</volume></stock>" % (
            symbol + 1,
            price + 1,
            volume + 1,
        )


def subscriptions(market: Market, seed: int = 1) -> Iterator[str]:
    """The subscriptions.

    >>> next(subscriptions(calibrate()))
    '/stock[symbol="S17" and price>=2363 and price<=9029 and volume>=1385 and volume<=6284]'
    """
    random = Draws(seed, "stock subscriptions").random
    symbols = market.symbols
    # Widths vary evenly around the mean by up to half of it, and less where they would leave the values.
    spread = 2 * min(market.width / 2, _VALUES - market.width, market.width - 1)
    least = market.width - spread / 2
    for _ in range(market.subscriptions):
        # Adding a draw before rounding down keeps the mean exact. The two widths are drawn apart from each other, so
        # that the mean of their product is the product of their means.
        wide = int(least + spread * random() + random())
        deep = int(least + spread * random() + random())
        price = int(random() * (_VALUES - wide + 1)) + 1
        volume = int(random() * (_VALUES - deep + 1)) + 1
        yield (
            f'/stock[symbol="S{int(random() * symbols) + 1}" and price>={price} and price<={price + wide - 1}'
            f" and volume>={volume} and volume<={volume + deep - 1}]"
        )
