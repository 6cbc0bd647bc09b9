"""From labelled records to entries: tables, labels, duplicates, the store."""
