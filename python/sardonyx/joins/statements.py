"""The SQL of templates: their tables of queries, and the conjunctive query that finds what all of them join.

Everything put into the text is a whole number of ours: the place of a node, of an equality, of a template. What queries
and documents say is in tables or bound.
"""

from __future__ import annotations

from functools import cache
from importlib.resources import files
from typing import Literal

from sardonyx.joins.templates import JoinGraph

__all__ = ["MOST_TABLES", "Sharing", "conjunctive_query", "fixed", "insert_row", "template_table"]

Sharing = Literal["none", "templates", "views"]
"""What queries share: nothing (each is a statement of its own), a statement by template, or also materialised views."""

MOST_TABLES = 64
"""Tables that SQLite joins in one statement."""


@cache
def fixed(name: str) -> tuple[str, ...]:
    """The statements of a file of `sql/`."""
    text = (files("sardonyx.joins") / "sql" / f"{name}.sql").read_text(encoding="utf-8")
    lines = [line for line in text.splitlines() if not line.startswith("--")]
    return tuple(statement.strip() for statement in "\n".join(lines).split(";") if statement.strip())


def template_table(number: int, equalities: int) -> tuple[str, str]:
    """The statements that make the table of a template's queries, `rt_NUMBER`, and its index.

    A row has the operands of each equality and the least and the most that the right document may be later.

    >>> print(template_table(3, 1)[0])
    CREATE TABLE rt_3 (query INTEGER PRIMARY KEY, left_0 INTEGER NOT NULL, right_0 INTEGER NOT NULL,
    least_us INTEGER NOT NULL, most_us INTEGER NOT NULL)
    """
    operands = [f"{side}_{place}" for place in range(equalities) for side in ("left", "right")]
    columns = [*operands, "least_us", "most_us"]
    declared = ", ".join(f"{column} INTEGER NOT NULL" for column in columns)
    table = f"CREATE TABLE rt_{number} (query INTEGER PRIMARY KEY, {declared})"
    return table, f"CREATE INDEX rt_{number}_operands ON rt_{number} ({', '.join(columns)})"


def insert_row(number: int, equalities: int) -> str:
    """The statement that inserts a row into the table of a template."""
    holders = ", ".join("?" * (2 * equalities + 3))
    return f"INSERT INTO rt_{number} VALUES ({holders})"  # noqa: S608  a number and question marks of ours


def conjunctive_query(graph: JoinGraph, number: int, *, new_is_right: bool, sharing: Sharing) -> str:
    """The statement that finds what the queries of a template join: the new document with those of the join state.

    `new_is_right`: whether the new document is that of the right block. The statement gives query, document of the join
    state, and the nodes of the left and of the right root; it is given `timestamp_us` and `identity` of the new
    document, and `query` where nothing is shared. `CROSS JOIN` keeps SQLite to the order in which tables are named:
    from the few values of the new document, and last to the queries, so that the work before is that of one query. On
    the way the index of the queries says which equalities some of them begin with.

    Raises `ValueError` where SQLite can not join so many tables.
    """
    left, right = ("o", "n") if new_is_right else ("n", "o")
    trees = {left: graph.left, right: graph.right}
    later = "({0} - d.timestamp_us)" if new_is_right else "(d.timestamp_us - {0})"
    in_time = later.format(":timestamp_us") + " BETWEEN rt.least_us AND rt.most_us"
    is_alone = sharing == "none"
    from_ = _From(trees, has_views=sharing == "views")
    if is_alone:
        from_.add(f"rt_{number}", "rt", ["rt.query = :query"])
    asked: list[str] = []
    for place, ends in enumerate(graph.equalities):
        nodes = dict(zip((left, right), ends, strict=True))
        wanted = [f"{left}{place}.operand = rt.left_{place}", f"{right}{place}.operand = rt.right_{place}"]
        from_.equality(place, nodes["n"], nodes["o"])
        asked += wanted
        if is_alone:
            from_.restrict(wanted)
        elif place < len(graph.equalities) - 1:
            begun = " AND ".join(asked)
            # A number of ours, and columns.
            from_.restrict([f"EXISTS (SELECT 1 FROM rt_{number} AS rt WHERE {begun})"])  # noqa: S608
    if is_alone:
        from_.restrict([in_time])
    from_.structure()
    if not is_alone:
        from_.add(f"rt_{number}", "rt", [*asked, in_time])
    return f"SELECT DISTINCT rt.query, d.document, {from_.root(left)}, {from_.root(right)}\n{from_.text()}"


class _From:
    """The tables of a conjunctive query in their order, each with the conditions that can be judged once it is there.

    `n` is the side of the new document and `o` that of the old ones. Where the node of a tree is, with what it hangs
    from, a row of a slice (`n0`, the new side of equality 0) or of the bindings (`nb2`, node 2 of the new side) says.
    """

    def __init__(self, trees: dict[str, tuple[int, ...]], has_views: bool) -> None:
        self._trees = trees
        self._has_views = has_views
        self._tables: list[tuple[str, list[str]]] = []
        self._values: dict[tuple[str, int], str] = {}
        self._bound: dict[tuple[str, int], str] = {}

    def add(self, table: str, alias: str, conditions: list[str]) -> None:
        """A further table."""
        self._tables.append((f"{table} AS {alias}", conditions))

    def restrict(self, conditions: list[str]) -> None:
        """Further conditions at the last table."""
        self._tables[-1][1].extend(conditions)

    def equality(self, place: int, new_node: int, old_node: int) -> None:
        """The values of both sides of an equality."""
        kind = "l" if self._has_views else "doc"
        self.add(f"w_{kind}", f"n{place}", self._at("n", new_node, f"n{place}"))
        same = [f"o{place}.value = n{place}.value"]
        if place:
            same.append(f"o{place}.document = d.document")
        self.add(f"r_{kind}", f"o{place}", same + self._at("o", old_node, f"o{place}"))
        if not place:
            self.add("document", "d", ["d.document = o0.document", "d.identity <> :identity"])

    def _at(self, side: str, node: int, alias: str) -> list[str]:
        """Register where a compared node is; the conditions that tie it to what is there already."""
        known = self._values.setdefault((side, node), alias)
        tied = [f"{alias}.node = {known}.node"] if known != alias else []
        if self._has_views:
            tied += self._bind(side, node, alias)
        return tied

    def structure(self) -> None:
        """The bindings of all nodes of which they are not known yet, children before parents."""
        for side, parents in self._trees.items():
            for node in range(len(parents) - 1, -1, -1):
                if (side, node) in self._bound:
                    continue
                alias = f"{side}b{node}"
                where = self._values.get((side, node))
                if where is not None:
                    found = [f"{alias}.definition = {where}.definition", f"{alias}.node = {where}.node"]
                else:
                    child = self._bound[side, parents.index(node)]
                    found = [f"{alias}.definition = {child}.parent_definition", f"{alias}.node = {child}.parent"]
                if side == "o":
                    found.append(f"{alias}.document = d.document")
                self.add("r_bin" if side == "o" else "w_bin", alias, found + self._bind(side, node, alias))

    def _bind(self, side: str, node: int, alias: str) -> list[str]:
        """Register what says from where a node hangs; the conditions of the tree that can be judged with it.

        That definitions agree where nodes do is not asked: the operands of the query say so.
        """
        if (side, node) in self._bound:
            return [f"{alias}.parent = {self._bound[side, node]}.parent"]
        parents = self._trees[side]
        tied = []
        for other, bound in ((other, bound) for (at, other), bound in self._bound.items() if at == side):
            if parents[other] == node:
                tied.append(f"{bound}.parent = {alias}.node")
            elif parents[node] == other:
                tied.append(f"{alias}.parent = {bound}.node")
            elif parents[node] == parents[other]:
                tied.append(f"{alias}.parent = {bound}.parent")
        self._bound[side, node] = alias
        return tied

    def root(self, side: str) -> str:
        """The node of a root."""
        return f"{self._bound[side, 0]}.node"

    def text(self) -> str:
        """The clause."""
        if len(self._tables) > MOST_TABLES:
            raise ValueError(f"the template joins {len(self._tables)} tables; SQLite joins {MOST_TABLES} at most")
        (first, restrictions), *others = self._tables
        lines = [f"FROM {first}"]
        lines += [
            f"CROSS JOIN {table} ON {' AND '.join(conditions) if conditions else 'TRUE'}"
            for table, conditions in others
        ]
        return "\n".join([*lines, f"WHERE {' AND '.join(restrictions) if restrictions else 'TRUE'}"])
