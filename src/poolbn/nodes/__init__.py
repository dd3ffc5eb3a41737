"""Models of one node: the poolings a user picks from, and their fits."""
