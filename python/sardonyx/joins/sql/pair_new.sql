-- Makes w_l: the compared nodes of the document that has just arrived, each with its value and with what it hangs from.
-- Reads w_doc, w_bin.
INSERT INTO w_l (value, operand, document, definition, node, parent_definition, parent)
SELECT
    w_doc.value, w_doc.operand, w_doc.document, w_doc.definition, w_doc.node, w_bin.parent_definition, w_bin.parent
FROM w_doc
INNER JOIN w_bin ON w_bin.definition = w_doc.definition AND w_bin.node = w_doc.node;
