"""Networks as poolbn 0.2.0 wrote them, and what it answered.

With 0.2.0 installed: python make.py FOLDER
"""

from __future__ import annotations

import json
import sys
import warnings
from pathlib import Path

import poolbn as pb

NUMBERS = ["age", "bmi", "gestation_days", "birthweight_g"]
OTHERS = ["tobacco", "public_assistance", "age", "gestation_days"]
ORDER = pb.Constraints(
    required=[("age", "bmi"), ("bmi", "birthweight_g"), ("gestation_days", "birthweight_g")],
    max_parents=2,
)
KINDS = pb.Constraints(
    required=[
        ("tobacco", "public_assistance"),
        ("age", "public_assistance"),
        ("age", "gestation_days"),
    ],
    forbidden=[
        ("public_assistance", "tobacco"),
        ("public_assistance", "age"),
        ("tobacco", "age"),
        ("age", "tobacco"),
    ],
)


def networks(trial):
    """By name."""
    numbers = trial[["clinic", *NUMBERS]].dropna()
    for name, pooling in (("shared", "partial"), ("pooled", pb.Partial(residuals="pooled"))):
        yield name, NUMBERS, pb.learn(numbers, group="clinic", pooling=pooling, constraints=ORDER)
    yield "none", NUMBERS, pb.learn(numbers, group="clinic", pooling="none", constraints=ORDER)
    others = trial[["clinic", *OTHERS]].dropna()
    for name, how in (("logit", "logit"), ("table", "table")):
        pooling = pb.Partial(discrete=how)
        rules = (
            KINDS if how == "logit" else pb.Constraints(required=[("tobacco", "public_assistance")])
        )
        columns = OTHERS if how == "logit" else OTHERS[:2]
        kinds = {"gestation_days": "count"} if how == "logit" else {}
        net = pb.learn(
            others[["clinic", *columns]],
            group="clinic",
            pooling=pooling,
            constraints=rules,
            kinds=kinds,
        )
        yield name, columns, net


def main(out: Path) -> None:
    """Write all."""
    warnings.simplefilter("ignore")
    trial = pb.datasets.opt()
    told = {}
    for name, columns, net in networks(trial):
        net.save(out / f"{name}.json")
        rows = trial[["clinic", *columns]].dropna().groupby("clinic").head(3)
        effects = net.effects()
        told[name] = {
            "columns": columns,
            "effects": effects[["effect", "se", "between_sd"]].to_numpy().tolist(),
            "levels": list(net.levels),
            "own": effects[list(net.levels)].to_numpy().tolist(),
            "loglik": net.loglik(rows, rows=True, plugin=True).tolist(),
            "predict": net.predict(rows, columns[1], plugin=True).to_dict("list"),
            "classify": net.classify(rows, plugin=True)[list(net.levels)].to_numpy().tolist(),
        }
    (out / "answers.json").write_text(json.dumps(told))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
