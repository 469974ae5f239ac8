-- Adds the document that has just arrived to the slices, which are there for all of its values.
-- Reads w_l; empties it.
INSERT INTO r_l SELECT value, operand, document, definition, node, parent_definition, parent FROM w_l;

DELETE FROM w_l;
