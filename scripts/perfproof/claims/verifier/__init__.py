"""The second computation: from raw data, with its own reader and its own interval arithmetic.

Nothing here may import the stages that made the tables or the claims.
"""
