"""The version; numbers that the numerics and those who read their results agree on."""

VERSION = "0.2.0"

# A column whose square, after the earlier columns are taken out, is below this part of its own is a
# combination of them: from statistics in double precision the rest is rounding. R's lm stops at the
# same place, 1e-7 in standard deviations.
RANK_TOLERANCE = 1e-12
# How far evidence may be from what other evidence makes certain, in standard deviations. (What is
# certain has a standard deviation of at most a tenth of this, given the other evidence.)
CERTAIN = 10 * RANK_TOLERANCE**0.5
# A variance inside a data set below this, in units of the pooled variance, is rounding.
CONSTANT_TOLERANCE = 1e-20
# A residual variance of a data set below this part of the pooled one is that of an exact relation.
EXACT = 1e-6

# What a fit ends with. DEPENDENT + a: column a is a combination of those before it.
CONVERGED, UNSETTLED, DETERMINED, DEPENDENT = 0, 1, 2, 3
