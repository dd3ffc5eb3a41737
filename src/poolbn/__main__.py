"""`python -m poolbn` is the command line."""

from poolbn.commands.cli import app

app()
