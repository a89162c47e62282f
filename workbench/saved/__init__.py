"""What is kept beside a corpus's immutable generations, in one SQLite file: judgments, searches, notes and jobs."""
