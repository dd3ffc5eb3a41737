# Random effects of each data set and their conditional covariances, with the parameters that they follow from:
# Rscript adapt.R > adapt.json
suppressMessages({library(lme4); library(jsonlite)})
cases <- list(
  list("sleepstudy", "Reaction", "Days", "Subject", "full"),
  list("sleepstudy", "Reaction", character(0), "Subject", "full"),
  list("textbook_3", "y", c("x1", "x2", "x3"), "F", "full"),
  list("bdf", "lang", c("iq", "ses"), "school", "intercept"),
  list("opt", "birthweight_g", c("gestation_days", "bmi"), "clinic", "full"))
out <- list()
for (c in cases) {
  file <- if (c[[1]] == "opt") "../../../src/poolbn/_data/opt.csv" else paste0("../lme/data/", c[[1]], ".csv.gz")
  d <- read.csv(gzfile(file), colClasses = setNames("character", c[[4]]))
  d <- na.omit(d[c(c[[2]], c[[3]], c[[4]])])
  x <- paste(c("1", c[[3]]), collapse = " + "); z <- if (c[[5]] == "full") x else "1"
  m <- lmer(as.formula(sprintf("%s ~ %s + (%s | %s)", c[[2]], x, z, c[[4]])), d, REML = FALSE)
  r <- ranef(m, condVar = TRUE)[[1]]; v <- attr(r, "postVar"); V <- VarCorr(m)[[1]]
  out[[length(out) + 1]] <- list(data = c[[1]], response = c[[2]], predictors = I(c[[3]]), group = c[[4]], singular = isSingular(m),
    fixef = I(unname(fixef(m))), Sigma = matrix(V, nrow(V)), sigma = sigma(m), levels = I(rownames(r)), ranef = unname(as.matrix(r)),
    cond_var = lapply(seq_len(dim(v)[3]), function(j) matrix(v[, , j], nrow(V))))
}
cat(toJSON(list(lme4 = as.character(packageVersion("lme4")), cases = out), auto_unbox = TRUE, digits = NA))
