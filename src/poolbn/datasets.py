"""The bundled trial."""

from __future__ import annotations

from importlib.resources import files
from typing import TYPE_CHECKING, Literal, get_args

from poolbn.errors import check_option

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["opt"]

Kind = Literal["all", "continuous"]

_DISCRETE = (
    "treatment", "education", "public_assistance", "diabetes", "tobacco", "previous_pregnancy",
    "infection", "preterm",
)  # fmt: skip


def __dir__() -> list[str]:
    return __all__


def opt(*, kind: Kind = "all") -> pd.DataFrame:
    """The Obstetrics and Periodontal Therapy trial: 823 women in four clinics.

    Pregnant women with gum disease were treated before or after delivery. Columns:

    - `clinic`: KY, MN, MS or NY; the related data sets, of 211, 247, 192 and 173 women;
    - `age`, `bmi`: at enrolment;
    - `gingival_0`, `bleeding_0`, `depth_0`, `attachment_0`, `calculus_0`, `plaque_0`: dental
      findings at baseline: gingival index, % of sites that bleed on probing, mean probing depth
      (mm), mean attachment loss (mm), calculus index, plaque index;
    - `gingival_5` to `plaque_5`: the same at visit 5;
    - `gestation_days`, `birthweight_g`: the outcome;
    - discrete: `treatment` (treated before delivery, or control), `education` (3 levels),
      `public_assistance`, `diabetes`, `tobacco`, `previous_pregnancy`, `infection` (of the urinary
      tract) and `preterm` (before 37 weeks).

    The natural order in time is `age`, `bmi` and the like, baseline, visit 5, outcome; treatment is
    by lot. Cells can be missing: 537 rows are complete, 545 in the continuous columns, and 737 in
    those without visit 5.

    Args:
        kind: which columns; "continuous" leaves the discrete ones out.

    Source: columns chosen and renamed from the table `opt` of the R package medicaldata (MIT
    licence). Study: Michalowicz and others, "Treatment of periodontal disease and the risk of
    preterm birth", New England Journal of Medicine 355 (2006).

    Examples:
        >>> opt().groupby("clinic").size().to_dict()
        {'KY': 211, 'MN': 247, 'MS': 192, 'NY': 173}
        >>> opt()["treatment"].value_counts().to_dict()
        {'treated': 413, 'control': 410}
    """
    import pandas as pd

    check_option("kind", kind, get_args(Kind))

    with files("poolbn").joinpath("_data/opt.csv").open(encoding="utf-8") as lines:
        table = pd.read_csv(lines)
    return table if kind == "all" else table.drop(columns=list(_DISCRETE))
