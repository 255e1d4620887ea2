"""Performance work on AI-for-science training: runs, figures of merit, checked claims."""

__version__ = "0.1.0"
