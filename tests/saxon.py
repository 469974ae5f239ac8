"""Saxon as the oracle of XQuery: a query compiled once, run on many documents, and results compared as XML."""

import re
from collections.abc import Mapping
from typing import Any

from lxml import etree
from saxonche import PySaxonApiError, PySaxonProcessor

from tests.engine import Outcome

_PROCESSOR = PySaxonProcessor(license=False)
# What is rewritten the least is the best oracle: with its optimiser, Saxon 13.1 fails on some correct queries.
_PROCESSOR.set_configuration_property("http://saxon.sf.net/feature/optimizationLevel", "0")
_CODE = re.compile(r"^\s+((?!SXWN)[A-Z]{4}[0-9]{4})\s+(.*)", re.MULTILINE | re.DOTALL)  # SXWN: warnings
_STRING = r"""(?:"[^"]*"|'[^']*')"""
_DECLARATION = rf"""declare\s+(?!variable|function|%)(?:[^;"'{{]|{_STRING})*;"""
_SPACE = r"(?:\s|\(:.*?:\))"
_VERSION = re.compile(rf"{_SPACE}*xquery\s+version\s+(?:[^;\"']|{_STRING})*;", re.DOTALL)
_PROLOG = re.compile(rf"(?:{_SPACE}|{_DECLARATION})*", re.DOTALL)
_DOCUMENT = re.compile(rf"(?<![\w:$-])(?:fn:)?doc(?:ument)?\(\s*{_STRING}\s*\)")
_CACHE_SIZE = 512
_documents: dict[bytes, Any] = {}


def document(payload: bytes | str) -> Any:
    """The parsed document; the last few hundred are kept."""
    key = payload.encode() if isinstance(payload, str) else payload
    if key not in _documents:
        if len(_documents) >= _CACHE_SIZE:
            _documents.clear()
        # Saxon wants characters, and libxml2 knows the encoding; white space and CDATA are the same after this.
        text = payload if isinstance(payload, str) else _decoded(payload)
        _documents[key] = _PROCESSOR.parse_xml(xml_text=text)
    return _documents[key]


def _decoded(payload: bytes) -> str:
    try:
        text = payload.decode("utf-8-sig")
    except UnicodeDecodeError:
        text = ""
    if not text or re.match(r"<\?xml[^>]*encoding", text):
        parser = etree.XMLParser(huge_tree=True, resolve_entities=False, strip_cdata=False)
        return str(etree.tostring(etree.fromstring(payload, parser).getroottree(), encoding="unicode"))
    return text


def parts(query: str) -> tuple[str, str, str]:
    """A query as its version declaration, the declarations of its prolog, and the rest."""
    version = _VERSION.match(query)
    head = version.group() if version else ""
    match = _PROLOG.match(query, len(head))
    prolog = match.group() if match else ""
    return head, prolog, query[len(head) + len(prolog) :]


def rewritten(query: str, namespaces: Mapping[str, str] | None = None) -> str:
    """The query for Saxon: prefixes declared in its prolog, every way to name the document an external variable."""
    version, prolog, body = parts(_DOCUMENT.sub("$doc", query))
    declared = "".join(_declaration(prefix, uri, prolog) for prefix, uri in (namespaces or {}).items())
    external = "" if re.search(r"declare\s+variable\s+\$doc\b", query) else "declare variable $doc external;"
    return f"{version}{declared}{prolog}{external}{body}"


def _declaration(prefix: str, uri: str, prolog: str) -> str:
    form = f"namespace {prefix}" if prefix else "default element namespace"
    if re.search(rf"declare\s+{form}\s*[='\"]".replace(" ", r"\s+"), prolog):
        return ""  # what the query itself declares counts
    value = uri.replace("&", "&amp;").replace('"', '""')
    return f'declare {form} {"=" if prefix else ""}"{value}";'


class Query:
    """A query; Saxon compiles it when it runs for the first time."""

    def __init__(self, text: str, namespaces: Mapping[str, str] | None = None) -> None:
        """`namespaces`: URIs of prefixes; the prefix "" is the default of element names."""
        self._query = _PROCESSOR.new_xquery_processor()
        self._query.set_property("!method", "xml")
        self._query.set_property("!omit-xml-declaration", "yes")
        self._query.set_property("!indent", "no")
        self._query.set_query_content(rewritten(text, namespaces))

    def run(self, payload: bytes | str) -> Outcome:
        """Its result on a document, which is the context item, `$doc` and every `doc("…")`."""
        tree = document(payload)
        self._query.set_context(xdm_item=tree)
        self._query.set_parameter("doc", tree)
        try:
            text = self._query.run_query_to_string()
        except PySaxonApiError as raised:
            found = _CODE.search(str(raised))
            if found is None and "Static error" in str(raised):
                # Where the input ends too early, Saxon names no code.
                return Outcome(error="XPST0003", message=" ".join(str(raised).split()))
            if found is None:
                raise
            return Outcome(error=found[1], message=" ".join(found[2].split()))
        return Outcome(text="" if text is None else text)


def run(query: str, payload: bytes | str, namespaces: Mapping[str, str] | None = None) -> Outcome:
    """One query on one document."""
    return Query(query, namespaces).run(payload)


_WRAPPED = etree.XMLParser(huge_tree=True, resolve_entities=False)


def canonical(text: str, scopes: bool = False) -> object:
    """What two results have to share: expanded names, attributes as a set, text, comments and instructions exactly.

    `scopes`: also the namespaces in scope of every element, where a prefix is bound to what. A result without markup
    stands for itself.
    """
    if "<" not in text and "&" not in text:
        return text
    return _form(etree.fromstring(f"<sequence-wrapper>{text}</sequence-wrapper>".encode(), _WRAPPED), scopes)


def _form(node: Any, scopes: bool) -> object:
    if node.tag is etree.Comment:
        return ("comment", node.text or "", node.tail or "")
    if node.tag is etree.ProcessingInstruction:
        return ("instruction", node.target, node.text or "", node.tail or "")
    scope = frozenset(node.nsmap.items()) if scopes else None
    children = [_form(child, scopes) for child in node]
    return (node.tag, frozenset(node.attrib.items()), scope, node.text or "", children, node.tail or "")


def same(left: str, right: str, scopes: bool = False) -> bool:
    """Whether two results are equal."""
    return left == right or canonical(left, scopes) == canonical(right, scopes)
