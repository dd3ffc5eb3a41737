"""`python -m poolbn` is the command line."""

from poolbn.cli import app

app()
