"""The optimizer loop: which lever to try next, and what its runs say."""
