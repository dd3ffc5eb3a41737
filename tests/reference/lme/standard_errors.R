# Standard errors, BLUPs and their conditional SDs: Rscript standard_errors.R > standard_errors.json
suppressMessages({library(lme4); library(jsonlite)})
cases <- list(
  list("sleepstudy", "Reaction", "Days", "Subject", "full"),
  list("sleepstudy", "Reaction", "Days", "Subject", "intercept"),
  list("textbook_1", "y", "x1", "F", "full"),
  list("textbook_3", "y", c("x1", "x2", "x3"), "F", "full"),
  list("bdf", "lang", c("iq", "ses"), "school", "intercept"),
  list("crabs", "FL", c("RW", "CL"), "spsex", "intercept"))
out <- list()
for (c in cases) for (reml in c(FALSE, TRUE)) {
  d <- read.csv(gzfile(paste0("data/", c[[1]], ".csv.gz")), colClasses = setNames("character", c[[4]]))
  x <- paste(c("1", c[[3]]), collapse = " + "); z <- if (c[[5]] == "full") x else "1"
  f <- as.formula(sprintf("%s ~ %s + (%s | %s)", c[[2]], x, z, c[[4]]))
  m <- lmer(f, d, REML = reml, control = lmerControl(optimizer = "nloptwrap", optCtrl = list(xtol_abs = 1e-14, ftol_abs = 1e-14, xtol_rel = 0, ftol_rel = 0, maxeval = 1e5)))
  r <- ranef(m, condVar = TRUE)[[1]]; v <- attr(r, "postVar")
  sd <- t(sapply(seq_len(dim(v)[3]), function(j) sqrt(diag(as.matrix(v[, , j])))))
  if (c[[5]] == "intercept") sd <- t(sd)
  out[[length(out) + 1]] <- list(data = paste0(c[[1]], ".csv.gz"), response = c[[2]], predictors = I(c[[3]]), group = c[[4]], random = c[[5]], reml = reml,
    logLik = as.numeric(logLik(m)), fixef = I(unname(fixef(m))), vcov = unname(as.matrix(vcov(m))), sigma = sigma(m),
    Sigma = matrix(VarCorr(m)[[1]], nrow(VarCorr(m)[[1]])), levels = I(rownames(r)), ranef = unname(as.matrix(r)), cond_sd = unname(sd))
}
cat(toJSON(list(lme4 = as.character(packageVersion("lme4")), cases = out), auto_unbox = TRUE, digits = NA))
