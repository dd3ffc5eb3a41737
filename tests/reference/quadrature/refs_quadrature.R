# A child without parents and a random intercept: logistic and Poisson regressions by adaptive Gauss-Hermite
# quadrature (glmer, nAGQ = 25), and by the Laplace approximation beside it (nAGQ = 1).
# Run in this folder: Rscript refs_quadrature.R
# Tables are those of the logit and poisson references, and small simulated data sets of 2 or 3 rows.
# With nAGQ > 1 glmer's deviance is from the saturated model, so the log-likelihood of that is added.
suppressMessages({library(lme4); library(jsonlite)})
out <- list()
fit_case <- function(id, data, y, family) {
  d <- read.csv(data); d$F <- factor(d$F)
  d$y <- d[[y]]
  control <- glmerControl(optimizer = "Nelder_Mead", optCtrl = list(maxfun = 1e5, FtolAbs = 1e-12, XtolRel = 1e-10), calc.derivs = FALSE)
  made <- function(n) suppressWarnings(suppressMessages(glmer(y ~ 1 + (1 | F), d, family, nAGQ = n, control = control)))
  m <- made(25L); laplace <- made(1L)
  saturated <- if (family == "poisson") sum(dpois(d$y, d$y, log = TRUE)) else 0
  out[[length(out) + 1]] <<- list(id = id, data = data, response = y, family = family, n = nrow(d), groups = nlevels(d$F),
    logLik = -deviance_of(m) / 2 + saturated, laplace = as.numeric(logLik(laplace)), fixef = unname(fixef(m)), sd = as.numeric(attr(VarCorr(m)$F, "stddev")))
  cat(sprintf("%-22s n=%5d F=%4d %.5f Laplace %.5f sd %.4f\n", id, nrow(d), nlevels(d$F), out[[length(out)]]$logLik, out[[length(out)]]$laplace, out[[length(out)]]$sd))
}
deviance_of <- function(m) as.numeric(-2 * logLik(m))
for (id in c("bacteria_week", "contra_livch", "cbpp_period", "opt_tobacco", "pima_age", "resp_subj", "resp_centre")) {
  data <- paste0("../logit/data/", id, ".csv"); names <- colnames(read.csv(data, nrows = 1))
  fit_case(id, data, names[2], "binomial")
}
set.seed(20261118)
sim <- function(id, J, sizes, b0, sd, family) {
  n <- sample(sizes, J, TRUE); F <- rep(seq_len(J), n); eta <- b0 + rnorm(J, 0, sd)[F]
  y <- if (family == "binomial") rbinom(length(F), 1, plogis(eta)) else rpois(length(F), exp(eta))
  data <- paste0("data/", id, ".csv"); write.csv(data.frame(F = F, y = y), data, row.names = FALSE, quote = FALSE)
  fit_case(id, data, "y", family)
}
sim("pairs_even", 400, 2:3, 0, 1, "binomial"); sim("pairs_rare", 500, 2:3, -2.5, 1.5, "binomial"); sim("pairs_wide", 400, 2:3, 0.5, 3, "binomial")
sim("up_to_ten", 60, 1:10, -1, 2, "binomial"); sim("counts_low", 300, 2:3, -1.5, 1, "poisson"); sim("counts_wide", 300, 2:3, -1, 2, "poisson"); sim("counts_high", 100, 2:3, 3, 0.7, "poisson")
for (data in sort(Sys.glob("../poisson/data/*.csv"))[1:4]) { names <- colnames(read.csv(data, nrows = 1)); fit_case(sub(".csv", "", basename(data)), data, names[2], "poisson") }
write_json(list(R = R.version.string, lme4 = as.character(packageVersion("lme4")), cases = out), "cases.json", digits = 10, auto_unbox = TRUE, pretty = TRUE)
