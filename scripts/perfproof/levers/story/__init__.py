"""What a loop leaves for people: decisions, table, story, plot, best recipe, events."""
