"""The paper's simulation study: grid, runs, claims beside results, report."""
