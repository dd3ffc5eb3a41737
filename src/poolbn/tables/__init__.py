"""Any table or file becomes validated batches of rows."""
