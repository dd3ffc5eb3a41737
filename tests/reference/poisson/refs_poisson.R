# Counts given their parents: Poisson mixed-effects models with all coefficients random and correlated, log link, Laplace
# approximation, best of glmer (two optimisers) and glmmTMB (two); negative binomial ones (NB2, one dispersion) by glmmTMB.
# Run in this folder: Rscript refs_poisson.R. Continuous parents are standardised, factors treatment coded.
suppressMessages({library(lme4); library(glmmTMB); library(jsonlite); library(MASS); library(HSAUR3)})
out <- list(); k <- 0
fit_case <- function(id, source, d, y, parents, g, family = "poisson") {
  d <- na.omit(d[, c(g, y, parents)]); names(d)[1] <- "F"; d$F <- factor(gsub("[^A-Za-z0-9.]", "_", paste0("g", d$F)))
  for (p in parents) d[[p]] <- if (is.numeric(d[[p]])) as.numeric(scale(d[[p]])) else factor(gsub("[^A-Za-z0-9.]", "_", paste0("l", d[[p]])))
  write.csv(format(d, digits = 9, trim = TRUE), paste0("data/", id, ".csv"), row.names = FALSE, quote = FALSE)
  d2 <- read.csv(paste0("data/", id, ".csv"), stringsAsFactors = TRUE); d2$F <- factor(d2$F)
  rhs <- paste(c("1", parents), collapse = " + "); fo <- as.formula(paste(y, "~", rhs, "+ (", rhs, "| F)"))
  tries <- list()
  grab <- function(name, e) { m <- try(suppressWarnings(suppressMessages(e())), silent = TRUE)
    if (!inherits(m, "try-error")) { ll <- if (inherits(m, "glmmTMB")) -m$fit$objective else as.numeric(logLik(m)); if (is.finite(ll)) tries[[name]] <<- list(m = m, ll = ll) } }
  bfgs <- glmmTMBControl(optimizer = optim, optArgs = list(method = "BFGS", control = list(maxit = 5000)))
  if (family == "poisson") {
    grab("glmer_default", function() glmer(fo, d2, poisson))
    grab("glmer_nlminb", function() glmer(fo, d2, poisson, control = glmerControl(optimizer = "nlminbwrap", calc.derivs = FALSE)))
  }
  f <- if (family == "poisson") poisson() else nbinom2()
  grab("tmb", function() glmmTMB(fo, d2, f)); grab("tmb_bfgs", function() glmmTMB(fo, d2, f, control = bfgs))
  if (!length(tries)) { cat(id, "no fit\n"); return(invisible()) }
  ll <- sapply(tries, `[[`, "ll"); b <- names(which.max(ll)); m <- tries[[b]]$m; tmb <- inherits(m, "glmmTMB")
  fe <- if (tmb) fixef(m)$cond else fixef(m); S <- if (tmb) VarCorr(m)$cond$F else VarCorr(m)$F
  S <- matrix(as.numeric(S), nrow(S)); ev <- eigen(S, only.values = TRUE)$values; q <- length(fe); k <<- k + 1
  out[[k]] <<- list(id = id, source = source, family = family, data = paste0("data/", id, ".csv"), response = y, parents = I(parents), n = nrow(d2),
    groups = nlevels(d2$F), best = b, logLik = unname(ll[b]), all = as.list(round(ll, 5)), q = q, n_params = q + q * (q + 1) / 2 + (family != "poisson"),
    coef_names = I(names(fe)), fixef = I(unname(fe)), Sigma = S, theta = if (family == "poisson") NULL else sigma(m), singular = min(ev) < 1e-4 * max(ev, 1e-8))
  cat(sprintf("%-24s n=%5d F=%3d q=%d best=%s %.4f\n", id, nrow(d2), nlevels(d2$F), q, b, ll[b]))
  write_json(list(R = R.version.string, lme4 = as.character(packageVersion("lme4")), glmmTMB = as.character(packageVersion("glmmTMB")),
    note = "see refs_poisson.R beside this file", cases = out), "cases.json", digits = 10, auto_unbox = TRUE)
}
set.seed(20261116)
gt <- lme4::grouseticks; ep <- MASS::epil; ep$base <- log(ep$base); he <- HSAUR3::epilepsy; sa <- glmmTMB::Salamanders
fit_case("grouse_0", "lme4::grouseticks", gt, "TICKS", character(0), "LOCATION"); fit_case("grouse_height", "lme4::grouseticks", gt, "TICKS", "HEIGHT", "YEAR")
fit_case("grouse_year", "lme4::grouseticks", gt, "TICKS", "YEAR", "LOCATION"); fit_case("epil_base", "MASS::epil", ep, "y", c("base", "age"), "period")
fit_case("epil_trt", "MASS::epil", ep, "y", c("trt", "V4"), "subject"); fit_case("epilepsy_subject", "HSAUR3::epilepsy", he, "seizure.rate", character(0), "subject")
fit_case("epilepsy_period", "HSAUR3::epilepsy", he, "seizure.rate", c("base", "treatment"), "period"); fit_case("salamander_mined", "glmmTMB::Salamanders", sa, "count", "mined", "spp")
fit_case("salamander_site", "glmmTMB::Salamanders", sa, "count", c("Wtemp", "DOP"), "site"); fit_case("quine_age", "MASS::quine", quine, "Days", c("Sex", "Lrn"), "Age")
fit_case("insects_spray", "datasets::InsectSprays", InsectSprays, "count", character(0), "spray"); fit_case("warp_tension", "datasets::warpbreaks", warpbreaks, "breaks", "wool", "tension")
sim <- function(J, nj, p, sdb, level = 0.5, theta = Inf) {
  n <- J * nj; F <- rep(seq_len(J), each = nj); X <- matrix(rnorm(n * p), n); q <- p + 1; L <- matrix(rnorm(q * q), q) * sdb / sqrt(q)
  b <- matrix(rnorm(J * q), J) %*% t(L); eta <- level + rowSums(cbind(1, X) * (matrix(c(0, rnorm(p, 0, 0.4)), n, q, byrow = TRUE) + b[F, , drop = FALSE]))
  d <- data.frame(F = paste0("s", F), y = if (is.finite(theta)) rnbinom(n, size = theta, mu = exp(eta)) else rpois(n, exp(eta)))
  for (i in seq_len(p)) d[[paste0("x", i)]] <- X[, i]; d }
for (g in list(c(5, 20, 1, 0.5), c(10, 15, 2, 0.5), c(20, 10, 1, 0.3), c(3, 40, 2, 0.3), c(8, 30, 3, 0.4), c(25, 8, 0, 0.7), c(5, 20, 2, 0), c(30, 30, 2, 0.5)))
  fit_case(sprintf("sim_J%g_n%g_p%g_s%g", g[1], g[2], g[3], g[4]), "simulated", sim(g[1], g[2], g[3], g[4]), "y", if (g[3] > 0) paste0("x", 1:g[3]) else character(0), "F")
fit_case("nb_grouse_height", "lme4::grouseticks", gt, "TICKS", "HEIGHT", "YEAR", "nbinom2"); fit_case("nb_epilepsy_period", "HSAUR3::epilepsy", he, "seizure.rate", c("base", "treatment"), "period", "nbinom2")
fit_case("nb_salamander_mined", "glmmTMB::Salamanders", sa, "count", "mined", "spp", "nbinom2"); fit_case("nb_quine_age", "MASS::quine", quine, "Days", c("Sex", "Lrn"), "Age", "nbinom2")
fit_case("nb_sim_J10", "simulated", sim(10, 30, 1, 0.5, 1, 1.5), "y", "x1", "F", "nbinom2"); fit_case("nb_sim_J25", "simulated", sim(25, 20, 2, 0.4, 1, 3), "y", c("x1", "x2"), "F", "nbinom2")
