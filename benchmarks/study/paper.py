"""What the paper says of its simulation study, as data: all numbers and statements of its text."""

from __future__ import annotations

from .claims import (
    FALLS,
    RATIO,
    RISES,
    SHARE,
    Claim,
    Statistic,
    above,
    below,
    within,
)

_TIE = -0.005  # of F1, which is 1 for both models in many data sets

# The text has LME lower in 60% and a median of LME / CGBN above 1, which cannot both be.
_TURNED = " (the text's LME / CGBN turned round)"

_HETEROGENEOUS = "scenario != 'homogeneous'"
BALANCED = "scenario == 'balanced'"
UNBALANCED = "scenario == 'unbalanced'"
HOMOGENEOUS = "scenario == 'homogeneous'"


def _pair(measure: str, one: str = "LME", other: str = "CGBN") -> tuple[str, str]:
    return f"{measure} {one}", f"{measure} {other}"


def _ratio(
    part: str, what: str, where: str, pair: tuple[str, str], paper: tuple[float, float, float]
) -> list[Claim]:
    """A line each for the median and the quartiles."""
    names = {"median": 0.5, "lower quartile": 0.25, "upper quartile": 0.75}
    return [
        Claim(part, f"{what}, {name}", where, Statistic(*pair, "ratio", at), number, RATIO)
        for (name, at), number in zip(names.items(), paper, strict=True)
    ]


def _complete() -> list[Claim]:
    """The text does not say whether unbalanced data sets count here: there are lines for both."""
    part = "Against complete pooling"
    shd, kl = (Statistic(*_pair(measure, other="GBN")) for measure in ("shd", "kl"))
    found = []
    for words, where in (
        ("balanced", BALANCED),
        ("balanced and unbalanced", _HETEROGENEOUS),
    ):
        adverse = f"{where} and N == 10 and mean_parents == 4"
        found += [
            Claim(part, f"LME has lower SHD than GBN, {words}", where, shd, 0.94, SHARE),
            Claim(part, f"LME has lower KL than GBN, {words}", where, kl, 0.96, SHARE),
            Claim(part, f"lower SHD at N = 10 with 4 parents, {words}", adverse, shd, 0.65, SHARE),
            Claim(part, f"lower KL at N = 10 with 4 parents, {words}", adverse, kl, 0.93, SHARE),
        ]
    return found


def _balanced() -> list[Claim]:
    part = "Balanced data sets"
    lower = Statistic(*_pair("kl"))
    difference = Statistic(*_pair("kl"), "difference", 0.5)
    # The text reads boxplots of differences, whose boxes reach far below zero.
    reach = Statistic(*_pair("kl"), "difference", 0.25)
    arcs = Statistic(*_pair("shd"), "difference", 0.5)
    found = [
        Claim(part, "LME has lower KL than CGBN at |F| = 20", f"{BALANCED} and F == 20",
              lower, 0.52, SHARE),
        Claim(part, "LME has lower KL than CGBN for n/p < 0.2", f"{BALANCED} and n_over_p < 0.2",
              lower, 0.75, SHARE),
    ]  # fmt: skip
    for words, column, where in (
        ("N", "N", BALANCED),
        ("mean parents", "mean_parents", BALANCED),
        ("|F| from 5 to 50", "F", f"{BALANCED} and F >= 5"),
    ):
        ahead = f"LME is increasingly ahead of CGBN in KL with {words}"
        found += [
            Claim(part, f"{ahead}: median difference", where, difference, None, FALLS, column),
            Claim(part, f"{ahead}: lower quartile of the difference", where, reach, None, FALLS,
                  column),
            Claim(part, f"{ahead}: share lower", where, lower, None, RISES, column),
        ]  # fmt: skip
    few, more = f"{BALANCED} and rows == 10", f"{BALANCED} and rows > 10"
    small, large = f"{BALANCED} and n_over_p < 0.2", f"{BALANCED} and n_over_p > 0.5"
    ratio = Statistic(*_pair("kl"), "ratio", 0.5)
    even = within(0.9, 1.1)
    return [
        *found,
        Claim(part, "LME is markedly ahead in KL at |F| = 2: lower quartile of the difference",
              f"{BALANCED} and F == 2", reach, None, below(-1)),
        Claim(part, "LME is markedly ahead in KL at |F| = 2: share lower",
              f"{BALANCED} and F == 2", lower, None, above(0.5)),
        Claim(part, "SHD tied above n_j = 10: median difference", more, arcs, None,
              within(-1, 1), "rows"),
        Claim(part, "LME ahead in SHD at n_j = 10: median difference", few, arcs, None, below(0)),
        Claim(part, "similar false negative arcs: median difference", BALANCED,
              Statistic(*_pair("missing"), "difference", 0.5), None, within(-1, 1), "rows"),
        Claim(part, "similar false positive arcs: median difference", BALANCED,
              Statistic(*_pair("extra"), "difference", 0.5), None, within(-1, 1), "rows"),
        Claim(part, "LME has lower SHD up to n/p = 0.2: median difference", small, arcs, None,
              below(0), "n/p"),
        Claim(part, "LME has lower KL up to n/p = 0.2: share lower", small, lower, None,
              above(0.5), "n/p"),
        Claim(part, "KL is easily an order of magnitude apart below n/p = 0.2: first decile of "
              "LME / CGBN", small, Statistic(*_pair("kl"), "ratio", 0.1), None, below(0.1)),
        Claim(part, "SHD differences vanish above n/p = 0.5: median LME / CGBN", large,
              Statistic(*_pair("shd"), "ratio", 0.5), None, even),
        Claim(part, "KL differences vanish above n/p = 0.5: median LME / CGBN", large, ratio,
              None, even),
        Claim(part, "CGBN is not ahead in SHD above n/p = 0.5: share lower or equal", large,
              Statistic(*_pair("shd"), "at most"), None, above(0.5)),
        Claim(part, "CGBN is not ahead in KL above n/p = 0.5: share lower or equal", large,
              Statistic(*_pair("kl"), "at most"), None, above(0.5)),
    ]  # fmt: skip


def _predictions() -> list[Claim]:
    part = "Prediction and classification"
    f1 = Statistic(*_pair("f1"), "difference")
    small = f"{BALANCED} and n_over_p < 0.2"
    found = [
        Claim(part, "F1 of LME is always above that of CGBN: mean difference", BALANCED, f1, None,
              above(_TIE), "F"),
        Claim(part, "also for all n/p: mean difference", BALANCED, f1, None, above(_TIE), "n/p"),
        Claim(part, "F1 of LME is near 1 up to |F| = 20: median", f"{BALANCED} and F <= 20",
              Statistic("f1 LME", "f1 LME", "a", 0.5), None, above(0.95), "F"),
        Claim(part, "CGBN approaches LME in F1 as n approaches p: mean difference", BALANCED, f1,
              None, FALLS, "n/p"),
    ]  # fmt: skip
    for words, measure in (("known", "rmad_known"), ("unknown", "rmad_unknown")):
        found += [
            Claim(part, f"RMAD, F {words}, is in favour of LME up to n/p = 0.2: share lower",
                  small, Statistic(*_pair(measure)), None, above(0.5), "n/p"),
            Claim(part, f"RMAD, F {words}, is not markedly different for any |F|: median "
                  "LME / CGBN", BALANCED, Statistic(*_pair(measure), "ratio", 0.5), None,
                  within(0.9, 1.1), "F"),
        ]  # fmt: skip
    return found


def _unbalanced() -> list[Claim]:
    part = "Unbalanced data sets"
    lower = Statistic(*_pair("kl"))
    f1 = Statistic(*_pair("f1"), "difference")
    known, unknown = (Statistic(*_pair(f"rmad_{f}"), "ratio", 0.5) for f in ("known", "unknown"))
    both = f"{_HETEROGENEOUS} and (F == 5 or F == 10 or F == 20)"
    return [
        Claim(part, "LME has lower KL than CGBN at |F| = 20", f"{UNBALANCED} and F == 20",
              lower, 0.60, SHARE),
        Claim(part, "LME has lower KL than CGBN for n/p < 0.2",
              f"{UNBALANCED} and n_over_p < 0.2", lower, 0.78, SHARE),
        Claim(part, "more in favour of LME than balanced ones: share with lower KL", both, lower,
              None, RISES, "scenario"),
        Claim(part, "increasingly so with |F|: share with lower KL", UNBALANCED, lower, None,
              RISES, "F"),
        Claim(part, "increasingly so as n/p falls: share with lower KL", UNBALANCED, lower, None,
              FALLS, "n/p"),
        Claim(part, "more in favour of LME in classification: mean F1 difference", both, f1, None,
              RISES, "scenario"),
        Claim(part, "F1 increasingly in favour of LME with |F|: mean difference", UNBALANCED,
              f1, None, RISES, "F"),
        Claim(part, "F1 increasingly in favour of LME as n/p falls: mean difference", UNBALANCED,
              f1, None, FALLS, "n/p"),
        Claim(part, "more in favour of LME in prediction: median RMAD LME / CGBN", both, known,
              None, FALLS, "scenario"),
        Claim(part, "RMAD is similar for all |F|: median LME / CGBN", UNBALANCED, known, None,
              within(0.9, 1.1), "F"),
        Claim(part, "RMAD, F known, increasingly in favour of LME as n/p falls: median LME / CGBN",
              UNBALANCED, known, None, RISES, "n/p"),
        Claim(part, "RMAD, F unknown, increasingly in favour of LME as n/p falls: median "
              "LME / CGBN", UNBALANCED, unknown, None, RISES, "n/p"),
    ]  # fmt: skip


def _homogeneous() -> list[Claim]:
    part = "Homogeneous data sets"
    few = f"{HOMOGENEOUS} and n_over_p < 0.1"
    shares: list[tuple[str, Statistic, float]] = [
        ("SHD of LME is lower than that of CGBN", Statistic(*_pair("shd")), 0.35),
        ("SHD of LME equals that of CGBN", Statistic(*_pair("shd"), "equal"), 0.16),
        ("SHD of LME is higher than that of CGBN", Statistic(*_pair("shd"), "higher"), 0.47),
        ("LME has lower SHD than GBN", Statistic(*_pair("shd", other="GBN")), 0.75),
        ("GBN has lower KL than LME", Statistic(*_pair("kl", "GBN", "LME")), 0.78),
        ("GBN has lower KL than CGBN", Statistic(*_pair("kl", "GBN", "CGBN")), 0.75),
        ("LME has lower RMAD than CGBN", Statistic(*_pair("rmad_known")), 0.60),
    ]
    found = [
        Claim(part, what, HOMOGENEOUS, statistic, paper, SHARE) for what, statistic, paper in shares
    ]
    kl, arcs, error = _pair("kl"), _pair("shd"), _pair("rmad_known")
    for what, where, pair, paper in (
        ("SHD LME / CGBN", HOMOGENEOUS, arcs, (1.0, 0.95, 1.05)),
        ("SHD LME / GBN", HOMOGENEOUS, _pair("shd", other="GBN"), (0.93, 0.87, 1.0)),
        ("KL LME / GBN", HOMOGENEOUS, _pair("kl", other="GBN"), (1.07, 1.0, 1.23)),
        ("KL CGBN / GBN", HOMOGENEOUS, _pair("kl", "CGBN", "GBN"), (1.07, 1.0, 1.35)),
        ("KL LME / CGBN", HOMOGENEOUS, kl, (1.001, 0.923, 1.027)),
        ("KL LME / CGBN for n/p < 0.1", few, kl, (0.731, 0.003, 1.047)),
        ("SHD LME / CGBN for n/p < 0.1", few, arcs, (1.01, 0.88, 1.07)),
        ("RMAD LME / CGBN", HOMOGENEOUS, error, (1.03, 0.942, 1.306)),
        (f"RMAD CGBN / LME{_TURNED}", HOMOGENEOUS, error[::-1], (1.03, 0.942, 1.306)),
        ("RMAD LME / CGBN for n/p < 0.1", few, error, (1.1, 0.818, 2.190)),
        (f"RMAD CGBN / LME for n/p < 0.1{_TURNED}", few, error[::-1], (1.1, 0.818, 2.190)),
    ):
        found += _ratio(part, what, where, pair, paper)
    for model in ("LME", "CGBN"):
        no_worse = Statistic("rmad_known GBN", f"rmad_known {model}", "at most")
        found.append(
            Claim(part, f"GBN predicts at least as well as {model} almost always: share",
                  HOMOGENEOUS, no_worse, None, above(0.9))
        )  # fmt: skip
    for model in ("LME", "CGBN"):
        same = Statistic(f"rmad_unknown {model}", f"rmad_known {model}", "ratio", 0.5)
        found.append(
            Claim(part, f"RMAD of {model} is the same whether F is known or not: median ratio",
                  HOMOGENEOUS, same, None, within(0.98, 1.02))
        )  # fmt: skip
    return found


CLAIMS: tuple[Claim, ...] = (
    *_complete(),
    *_balanced(),
    *_predictions(),
    *_unbalanced(),
    *_homogeneous(),
)
