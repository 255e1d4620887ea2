"""Report stage: verified claims, figures of merit and data quality become one readable page."""
