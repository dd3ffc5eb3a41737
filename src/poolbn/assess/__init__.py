"""How far to trust a network: bootstrap, cross-validation, predictions."""
