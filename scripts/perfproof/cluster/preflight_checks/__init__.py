"""What the preflight looks at: the scheduler, the executor, files, trainers."""
