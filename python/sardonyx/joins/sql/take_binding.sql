-- Makes a row of w_bin from a witness of the document that has just arrived; other definitions than the queries' are left out.
-- Reads definition. Assumes that a binding is given once.
INSERT INTO w_bin (document, definition, node, parent_definition, parent)
SELECT :document, definition.definition, :node, definition.parent_definition, :parent
FROM definition
WHERE definition.definition = :definition;
