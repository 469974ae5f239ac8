"""Settings: described, checked when made, and handed to the core."""

import dataclasses
from typing import Any

import pytest

from sardonyx import Broker, BrokerSettings, Limits, XPushSettings
from sardonyx.config import describe
from sardonyx.errors import SettingsError


@pytest.mark.parametrize("cls", [Limits, BrokerSettings, XPushSettings])
def test_every_setting_is_described(cls: type[Any]) -> None:
    described = describe(cls)
    assert [name for name, *_ in described] == [item.name for item in dataclasses.fields(cls)]
    for name, _default, unit, doc in described:
        assert doc.endswith("."), name
        assert unit or name in ("limits", "xpush", "elements", "joins"), name


@pytest.mark.parametrize(
    "values",
    [
        {"depth": 0},
        {"depth": 70_000},
        {"depth": "9"},
        {"depth": True},
        {"document_bytes": 2**31},
        {"doctype": "maybe"},
        {"nodes": None},
        {"query_depth": 1001},
        {"cost_limit": -1},
    ],
)
def test_limits_out_of_range_are_refused(values: dict[str, Any]) -> None:
    with pytest.raises(SettingsError, match=f"^{next(iter(values))} is "):
        Limits(**values)


@pytest.mark.parametrize("values", [{"matcher": "relational"}, {"threads": 0}, {"limits": {}}, {"node_limit": 0}])
def test_settings_out_of_range_are_refused(values: dict[str, Any]) -> None:
    with pytest.raises(SettingsError, match=f"^{next(iter(values))} is "):
        BrokerSettings(**values)


@pytest.mark.parametrize(
    "values",
    [{"top_down": 1}, {"store_bytes": -1}, {"order": ("ab",)}, {"order": (("a", "a"),)}, {"order": ((1, 2),)}],
)
def test_options_out_of_range_are_refused(values: dict[str, Any]) -> None:
    with pytest.raises(SettingsError, match=f"^{next(iter(values))} "):
        XPushSettings(**values)


def test_options_from_plain_data() -> None:
    settings = BrokerSettings.from_mapping({"matcher": "xpush", "xpush": {"order": [["a", "b"]], "early": True}})
    assert settings.xpush == XPushSettings(order=(("a", "b"),), early=True)
    assert set(settings.xpush.for_core()) == {item.name for item in dataclasses.fields(XPushSettings)}
    with pytest.raises(SettingsError, match="unknown setting 'training_'"):
        BrokerSettings.from_mapping({"xpush": {"training_": True}})


def test_settings_from_plain_data() -> None:
    settings = BrokerSettings.from_mapping({"threads": 3, "limits": {"depth": 7, "doctype": "forbid"}})
    assert settings == BrokerSettings(threads=3, limits=Limits(depth=7, doctype="forbid"))
    with pytest.raises(SettingsError, match="unknown setting 'depht'"):
        BrokerSettings.from_mapping({"limits": {"depht": 7}})
    with pytest.raises(SettingsError, match="unknown setting 'thread'"):
        BrokerSettings.from_mapping({"thread": 7})


def test_the_core_gets_every_limit() -> None:
    names = {item.name for item in dataclasses.fields(Limits)} - {"cost_limit"}
    assert set(Limits().for_core()) == names


def test_an_unknown_matcher_is_refused() -> None:
    with pytest.raises(SettingsError, match="matcher"):
        Broker(matcher="magic")  # type: ignore[arg-type]
