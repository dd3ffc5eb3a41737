"""The report on a network: what it is made from, words, drawing, numbers and tables."""
