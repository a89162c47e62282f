"""From a query to a result: sources, fusion, explanation."""
