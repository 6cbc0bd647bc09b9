"""The durable run: a folder with a ledger, fed step by step, that survives crashes."""
