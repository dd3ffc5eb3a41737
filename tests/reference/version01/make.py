"""Networks and statistics as poolbn 0.1 (commit a427659) wrote them, and what it answered.

Run with that version: python make.py FOLDER; then gzip answers.json.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

import numpy as np

import poolbn as pb

ESTIMATES = (
    "effect", "interval", "alone", "alone_interval", "population", "population_interval",
    "new_interval",
)  # fmt: skip


def plain(x):
    if isinstance(x, np.ndarray):
        x = x.tolist()
    if isinstance(x, list | tuple):
        return [plain(v) for v in x]
    if isinstance(x, float):
        return x if np.isfinite(x) else repr(x)
    return x


def answers(net, trial, stats, given=()):
    from poolbn.drawing.arceffects import arc_effects
    from poolbn.drawing.residualsds import residual_sds

    rows = trial.groupby("clinic").head(3).copy()
    rows = rows[rows["clinic"].isin(net.levels)]
    rows = rows.drop(columns=list(given))
    gaps = rows.copy()
    gaps.loc[gaps.index[::2], "bmi"] = np.nan
    effects = net.effects()
    found = {
        "effect": plain(effects["effect"].to_numpy()),
        "se": plain(effects["se"].to_numpy()),
        "between_sd": plain(effects["between_sd"].to_numpy()),
        "loglik": plain(net.loglik(rows, rows=True).to_numpy()),
        "predict": plain(net.predict(gaps, "birthweight_g").to_numpy()),
        "unknown": plain(net.predict(gaps.drop(columns="clinic"), "bmi").to_numpy()),
        "classify": plain(net.classify(gaps)[list(net.levels)].to_numpy()),
        "total": plain(net.total_effects("age", "birthweight_g").iloc[:, 2:].to_numpy()),
        "mean": plain(net.joint.mean),
        "cov": plain(net.joint.cov),
    }
    sds, arcs = {}, {}
    for how, known in (("alone", None), ("stats", stats)):
        for node in net.dag.nodes:
            of = residual_sds(net, node, stats=known)
            sds[f"{node} {how}"] = plain([getattr(of, name) for name in ESTIMATES])
        for parent, child in net.dag.arcs:
            of = arc_effects(net, parent, child, stats=known)
            arcs[f"{parent} {child} {how}"] = plain([getattr(of, name) for name in ESTIMATES])
    return found | {"sds": sds, "arcs": arcs}


def main(out: Path) -> None:
    out.mkdir(parents=True, exist_ok=True)
    trial = pb.datasets.opt()[["clinic", "age", "bmi", "gestation_days", "birthweight_g"]].dropna()
    rest = trial[trial["clinic"] != "MS"]
    order = pb.Constraints(
        required=[("age", "bmi"), ("bmi", "birthweight_g"), ("gestation_days", "birthweight_g")],
        max_parents=2,
        forbidden=[("bmi", "age"), ("birthweight_g", "gestation_days")],
    )
    poolings = {
        "complete": "complete",
        "complete-unbiased": pb.Complete(variance="unbiased"),
        "none": "none",
        "none-unbiased": pb.Separate(variance="unbiased"),
        "partial": "partial",
        "intercept": pb.Partial(random="intercept"),
        "reml": pb.Partial(method="reml"),
        "pooled": pb.Partial(residuals="pooled"),
        "separate": pb.Partial(residuals="separate"),
        "auto": "auto",
    }
    stats = pb.stats(trial, group="clinic")
    stats.save(out / "trial.stats")
    told = {name: plain(getattr(stats, name)) for name in ("names", "levels", "n", "mean")}
    told["scatter"] = plain(stats.scatter)
    (out / "statistics.json").write_text(json.dumps(told))
    said = {}

    def keep(name, net, known, given=()):
        net.save(out / f"{name}.json")
        said[name] = answers(pb.load(out / f"{name}.json"), trial, known, given)

    for name, pooling in poolings.items():
        keep(name, pb.learn(stats, pooling=pooling, constraints=order), stats)
    few = pb.stats(rest, group="clinic")
    rows = trial[trial["clinic"] == "MS"].head(30)
    pooled = pb.learn(few, constraints=order, pooling=pb.Partial(residuals="pooled"))
    keep("adapted", pooled.adapt(rows, "MS").adapt(name="new"), None)
    keep("adapted-shared", pb.learn(few, constraints=order).adapt(rows, "MS"), None)
    fixed = pb.learn(stats, constraints=order).do(gestation_days=280)
    keep("do", fixed, None, ["gestation_days"])
    pb.random_network(pb.random_dag(4, 1.5, seed=1), 3, seed=1).save(out / "simulated.json")
    (out / "answers.json").write_text(json.dumps(said, indent=0))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
