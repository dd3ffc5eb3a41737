"""Makes predictions.json with scikit-learn: probabilities of levels, and how good they are."""

import json
from pathlib import Path

import numpy as np
import sklearn
from sklearn.metrics import brier_score_loss, f1_score, log_loss, roc_auc_score

cases = []
for seed, (n, K) in enumerate([(40, 2), (60, 3), (80, 4)]):
    rng = np.random.default_rng(seed)
    levels = list("abcd")[:K]
    p = rng.dirichlet(np.ones(K), n).round(1)  # with ties
    p[:, -1] = 1 - p[:, :-1].sum(axis=1)
    p = np.clip(p, 0.01, None)
    p /= p.sum(axis=1, keepdims=True)
    came = np.array(levels)[[rng.choice(K, p=row) for row in p]]
    guess = np.array(levels)[p.argmax(axis=1)]
    brier = brier_score_loss(came, p, labels=levels, scale_by_half=True)
    auc = roc_auc_score(came, p[:, 1] if K == 2 else p, multi_class="ovo", labels=levels)
    cases.append(
        {
            "levels": levels,
            "actual": came.tolist(),
            "probabilities": p.tolist(),
            "predicted": guess.tolist(),
            "log_loss": log_loss(came, p, labels=levels),
            "brier": brier,
            "auc": auc,
            "f1": f1_score(came, guess, labels=levels, average=None).tolist(),
        }
    )
text = json.dumps({"scikit-learn": sklearn.__version__, "cases": cases})
Path(__file__).with_name("predictions.json").write_text(text + "\n")
