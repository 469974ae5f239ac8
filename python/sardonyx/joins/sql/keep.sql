-- Moves the document that has just arrived into the join state, after its joins were looked for.
-- Reads w_bin, w_doc; empties them.
INSERT INTO r_bin SELECT document, definition, node, parent_definition, parent FROM w_bin;

INSERT INTO r_doc SELECT value, operand, document, definition, node FROM w_doc;

DELETE FROM w_bin;

DELETE FROM w_doc;
