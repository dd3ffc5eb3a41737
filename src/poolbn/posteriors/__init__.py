"""How probable arcs are: sums over all orders or graphs, chains, averages."""
