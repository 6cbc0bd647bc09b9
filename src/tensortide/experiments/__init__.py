"""The paper's experiments as data: scenario files, one runner, tables and figures."""
