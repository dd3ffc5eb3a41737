"""`python -m poolbn` is the command line."""

from poolbn.cli.app import app

app()
