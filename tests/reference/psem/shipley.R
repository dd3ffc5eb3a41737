# Wald's z of claims about Live, with variances taken for known as poolbn does: Rscript shipley.R, here.
# shipley.csv.gz: the complete rows of piecewiseSEM's table `shipley`. "Date" stops at a lower maximum.
suppressMessages({library(lme4); library(jsonlite)})
d <- read.csv("shipley.csv.gz")
cases <- lapply(list(c("lat", "Growth"), c("DD", "lat", "Growth"), c("Date", "DD", "Growth")), function(x) {
  f <- as.formula(paste("Live ~", paste(x, collapse = " + "), "+ (1 | site) + (1 | tree)"))
  m <- suppressWarnings(glmer(f, d, family = binomial))
  b <- fixef(m)[[x[1]]]
  V <- suppressWarnings(vcov(m, use.hessian = FALSE))
  list(column = x[1], logLik = as.numeric(logLik(m)), estimate = b, z = b / sqrt(V[x[1], x[1]]))
})
made_with <- paste("R", getRversion(), "lme4", packageVersion("lme4"))
write_json(list(made_with = made_with, claims = cases), "shipley.json", auto_unbox = TRUE, digits = 10, pretty = TRUE)
