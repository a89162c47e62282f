"""The desk: small, shared, mutable data beside a corpus's immutable generations, such as judgments and saved searches."""
