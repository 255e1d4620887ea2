"""The cluster under the runs: nodes to stay away from, and what became of a job."""
