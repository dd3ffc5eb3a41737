"""Draws network.png, the network of the README: python docs/images/network.py."""

from pathlib import Path

import poolbn as pb

columns = ["treatment", "age", "tobacco", "bleeding_0", "plaque_0", "bleeding_5", "plaque_5"]
columns += ["preterm", "birthweight_g"]
in_time = pb.Constraints(tiers=[columns[:3], columns[3:5], columns[5:7], columns[7:]])
net = pb.learn(
    pb.datasets.opt(),
    group="clinic",
    columns=columns,
    inputs=["treatment"],
    missing="em",
    constraints=in_time,
)
figure = net.plot().figure
figure.savefig(Path(__file__).with_suffix(".png"), dpi=110, bbox_inches="tight")
