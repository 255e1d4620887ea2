"""What every stage uses: the step contract, errors that name their file, digests."""
