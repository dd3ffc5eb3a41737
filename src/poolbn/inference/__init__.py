"""What the nodes say together: joint distributions, evidence, samples, distances."""
