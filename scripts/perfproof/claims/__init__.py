"""Claims and verdicts: analysts read tables, verifiers read raw data; they share the vocabulary."""
