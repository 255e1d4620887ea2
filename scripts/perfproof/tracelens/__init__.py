"""AMD's TraceLens as a second opinion: found, run, kept, and held against our own tables."""
