"""Bare parsers: what it costs others to read a document at all."""

from __future__ import annotations

from collections.abc import Callable
from xml.parsers import expat

from lxml import etree

__all__ = ["PARSERS"]


def _expat(document: bytes) -> None:
    parser = expat.ParserCreate(namespace_separator=" ")
    parser.Parse(document, True)


def _lxml(document: bytes) -> None:
    etree.fromstring(document)


PARSERS: dict[str, Callable[[bytes], None]] = {"pyexpat without handlers": _expat, "lxml tree": _lxml}
