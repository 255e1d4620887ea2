"""The records: every file that one stage writes and another reads, typed once.

JSON Schemas (`config/schemas/`) and documentation tables are generated from these models by
`python -m perfproof.schema.export`; CI checks that they are current.
"""
