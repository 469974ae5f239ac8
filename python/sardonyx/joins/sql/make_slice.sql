-- Makes the slice of r_l for one value: the compared nodes of documents kept that have it.
-- Reads r_doc, r_bin. Assumes that the slice is not there.
INSERT INTO r_l (value, operand, document, definition, node, parent_definition, parent)
SELECT
    r_doc.value, r_doc.operand, r_doc.document, r_doc.definition, r_doc.node, r_bin.parent_definition, r_bin.parent
FROM r_doc
INNER JOIN r_bin
    ON r_bin.document = r_doc.document AND r_bin.definition = r_doc.definition AND r_bin.node = r_doc.node
WHERE r_doc.value = :value;
