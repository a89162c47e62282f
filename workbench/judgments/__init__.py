"""Which documents answer which query: qrels, their file formats, and the judgments that people give in a corpus."""
