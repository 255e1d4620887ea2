"""What a run left: which files, which role each plays, and their digests."""
