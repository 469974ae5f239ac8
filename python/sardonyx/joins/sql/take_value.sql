-- Makes a row of w_doc from a value of the document that has just arrived; other operands than the queries' are left out.
-- Reads operand. Assumes that a node has one value for an operand.
INSERT INTO w_doc (value, operand, document, definition, node)
SELECT :value, operand.operand, :document, operand.definition, :node
FROM operand
WHERE operand.operand = :operand;
