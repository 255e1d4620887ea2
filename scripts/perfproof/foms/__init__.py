"""Training logs to figures of merit, and the comparison of two sets of figures."""
