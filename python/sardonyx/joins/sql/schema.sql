-- The tables of the reference, all of them empty.
--
-- definition, operand   what pattern nodes and compared values are, from the queries
-- document              time and identity of each document that is kept
-- r_bin, r_doc          the join state: nodes of the documents that are kept, and values of them
-- w_bin, w_doc          the same of the document that has just arrived
-- r_l                   slices: r_bin joined with r_doc, for some values (with view materialisation)
-- w_l                   w_bin joined with w_doc
--
-- A definition determines the definition that it hangs from, so rows carry both: a join walks up by node and definition.

CREATE TABLE definition (definition INTEGER PRIMARY KEY, parent_definition INTEGER NOT NULL);

CREATE TABLE operand (operand INTEGER PRIMARY KEY, definition INTEGER NOT NULL);

CREATE TABLE document (document INTEGER PRIMARY KEY, timestamp_us INTEGER NOT NULL, identity INTEGER NOT NULL);

CREATE TABLE r_bin (
    document INTEGER NOT NULL,
    definition INTEGER NOT NULL,
    node INTEGER NOT NULL,
    parent_definition INTEGER NOT NULL,
    parent INTEGER NOT NULL,
    PRIMARY KEY (document, definition, node, parent)
) WITHOUT ROWID;

CREATE TABLE r_doc (
    value TEXT NOT NULL,
    operand INTEGER NOT NULL,
    document INTEGER NOT NULL,
    definition INTEGER NOT NULL,
    node INTEGER NOT NULL,
    PRIMARY KEY (value, document, operand, node)
) WITHOUT ROWID;

CREATE TABLE r_l (
    value TEXT NOT NULL,
    operand INTEGER NOT NULL,
    document INTEGER NOT NULL,
    definition INTEGER NOT NULL,
    node INTEGER NOT NULL,
    parent_definition INTEGER NOT NULL,
    parent INTEGER NOT NULL,
    PRIMARY KEY (value, document, operand, node, parent)
) WITHOUT ROWID;

CREATE TABLE w_bin AS SELECT * FROM r_bin;

CREATE TABLE w_doc AS SELECT * FROM r_doc;

CREATE TABLE w_l AS SELECT * FROM r_l;
