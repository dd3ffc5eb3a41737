"""Real tables of all kinds: predicted probabilities of a discrete column in rows held out.

Rows of each data set go to five folds. A network is learned from the other folds, graph and all,
and predicts the outcome given all other columns and the data set. Beside it, scikit-learn's
logistic regression and gradient boosting have the data set among their columns, as a category.
Log-loss is per row, with the standard error of its difference from partial pooling's. The
calibration error is the mean difference between predicted probabilities and what came true, over
ten bins of each level with as many rows.

    python benchmarks/calibration.py [TABLE ...] [--out results/calibration.md]
"""

from __future__ import annotations

import argparse
import time
import warnings
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
from tiny import parsed, tiny

import poolbn as pb

TABLES = Path(__file__).parent / "tables" / "mixed"
OUTCOMES = {
    "Contraception": "use",
    "VerbAgg": "r2",
    "trial": "preterm",
    "Titanic": "Survived",
    "UCBAdmissions": "Admit",
    "bdf": "repeatgr",
}
TRIAL = [
    "preterm", "treatment", "age", "education", "public_assistance", "diabetes", "tobacco",
    "previous_pregnancy", "bmi", "gingival_0", "bleeding_0", "depth_0",
]  # fmt: skip
FOLDS, BINS = tiny(5, 2), 10
POOLINGS = tiny(("complete", "none", "partial", "auto"), ("complete", "none", "partial"))
Model = Callable[[pd.DataFrame, pd.DataFrame, str], pd.DataFrame]


def table(name: str) -> pd.DataFrame:
    """Complete rows, with the column `group`; data sets of fewer rows than folds are left out."""
    if name == "trial":
        frame = pb.datasets.opt().rename(columns={"clinic": "group"})
        frame = frame[["group", *TRIAL]].dropna()
    else:
        text = {"group": str, "repeatgr": str, "sex": str}
        frame = pd.read_csv(TABLES / f"{name}.csv.gz", dtype=text)
    rows = frame.groupby("group")["group"].transform("size")
    return frame[rows >= FOLDS].reset_index(drop=True)


def folds(groups: pd.Series) -> np.ndarray:
    """The fold of each row: those of a data set evenly, in random order."""
    rng = np.random.default_rng(1)
    lots = pd.Series(rng.random(len(groups)), index=groups.index)
    return (lots.groupby(groups).rank().astype(int) % FOLDS).to_numpy()


def network(pooling: str) -> Model:
    """Probabilities of a network."""

    def predicted(known: pd.DataFrame, new: pd.DataFrame, outcome: str) -> pd.DataFrame:
        net = pb.learn(known, group="group", pooling=pooling, preset="paper")
        return net.predict(new, outcome).drop(columns="most_probable")

    return predicted


def peer(name: str) -> Model:
    """Probabilities of scikit-learn's classifiers."""
    from sklearn.compose import make_column_transformer
    from sklearn.ensemble import HistGradientBoostingClassifier
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import OneHotEncoder, OrdinalEncoder, StandardScaler

    def predicted(known: pd.DataFrame, new: pd.DataFrame, outcome: str) -> pd.DataFrame:
        x = known.drop(columns=outcome)
        texts = [c for c in x if not pd.api.types.is_numeric_dtype(x[c])]
        numbers = [c for c in x if c not in texts]
        if name == "logistic regression":
            columns = make_column_transformer(
                (OneHotEncoder(handle_unknown="ignore"), texts), (StandardScaler(), numbers)
            )
            model = make_pipeline(columns, LogisticRegression(max_iter=1000))
        else:
            codes = OrdinalEncoder(handle_unknown="use_encoded_value", unknown_value=-1)
            columns = make_column_transformer((codes, texts), ("passthrough", numbers))
            few = [c for c in texts if x[c].nunique() <= 255]
            categories = [k for k, c in enumerate(texts) if c in few]
            boosting = HistGradientBoostingClassifier(
                categorical_features=categories, early_stopping=True, random_state=1
            )
            model = make_pipeline(columns, boosting)
        model.fit(x, known[outcome])
        made = model.predict_proba(new.drop(columns=outcome))
        return pd.DataFrame(made, index=new.index, columns=model.classes_)

    return predicted


def models() -> dict[str, Model]:
    """Those that can be had here, by name."""
    own = {pooling: network(pooling) for pooling in POOLINGS}
    try:
        import sklearn  # noqa: F401
    except ImportError:
        return own
    return own | {name: peer(name) for name in ("logistic regression", "gradient boosting")}


def calibration_error(p: np.ndarray, true: np.ndarray) -> float:
    """Of probabilities of one level and whether it came true."""
    bins = np.array_split(np.argsort(p, kind="stable"), BINS)
    return float(np.mean([abs(p[b].mean() - true[b].mean()) for b in bins]))


def assess(name: str, outcome: str) -> list[dict[str, object]]:
    """A row for each model."""
    frame = table(name)
    fold = folds(frame["group"])
    levels = sorted(frame[outcome].unique())
    losses, made = {}, []
    for model, predicted in models().items():
        start = time.perf_counter()
        found = pd.concat(
            [predicted(frame[fold != k], frame[fold == k], outcome) for k in range(FOLDS)]
        ).sort_index()
        seconds = time.perf_counter() - start
        p = found[levels].to_numpy()
        true = frame[outcome].to_numpy()[:, None] == np.array(levels)
        losses[model] = -np.log(np.maximum(p[true], 1e-300))
        error = np.mean([calibration_error(p[:, k], true[:, k]) for k in range(len(levels))])
        brier = float(((p - true) ** 2).sum(axis=1).mean())
        made.append(
            {"table": name, "model": model, "log-loss": losses[model].mean(), "Brier": brier,
             "calibration error": error, "seconds": seconds}
        )  # fmt: skip
    for row in made:
        apart = losses[str(row["model"])] - losses["partial"]
        row["difference"], row["se"] = apart.mean(), apart.std(ddof=1) / np.sqrt(len(apart))
        row["rows"], row["data sets"] = len(frame), frame["group"].nunique()
    return made


def markdown(found: pd.DataFrame) -> str:
    """Log-losses by table and model, then all numbers."""
    wide = found.pivot(index="table", columns="model", values="log-loss")
    wide = wide.loc[found["table"].unique(), found["model"].unique()]
    sizes = found.groupby("table")[["rows", "data sets"]].first().loc[wide.index]
    names = ["table", "rows", "data sets", *wide.columns]
    lines = [names, ["---"] * len(names)]
    for name, row in wide.iterrows():
        best = row[["complete", "none", "partial"]].min()
        cells = [f"**{v:.4f}**" if v <= best else f"{v:.4f}" for v in row]
        lines.append([str(name), *(f"{n:,}" for n in sizes.loc[name]), *cells])
    more = [
        "table",
        "model",
        "log-loss",
        "difference",
        "se",
        "Brier",
        "calibration error",
        "seconds",
    ]
    lines += [[], more, ["---"] * len(more)]
    for row in found[more].itertuples(index=False):
        lines.append([*row[:2], *(f"{v:.4f}" for v in row[2:7]), f"{row[7]:.2f}"])
    return "\n".join(f"| {' | '.join(line)} |" if line else "" for line in lines)


def main() -> None:
    """Measure, print and write."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("tables", nargs="*", default=list(OUTCOMES))
    parser.add_argument("--out", type=Path)
    options = parsed(parser, tables=["Titanic"])
    warnings.simplefilter("ignore")
    found = []
    for name in options.tables:
        found += assess(name, OUTCOMES[name])
        print(pd.DataFrame(found[-len(models()) :]).to_string(index=False), flush=True)
    text = markdown(pd.DataFrame(found))
    print(text)
    if options.out:
        options.out.write_text(f"{text}\n")


if __name__ == "__main__":
    main()
