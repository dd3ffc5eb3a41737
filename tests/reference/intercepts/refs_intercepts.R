# Logistic, Poisson and negative binomial models in which some coefficients vary between data sets: the intercept, (1 | F), or
# that and the slope of the first parent, (1 + x | F). Laplace approximation, best of glmer (two optimisers) and glmmTMB (two); of
# logits with (1 | F) also glmer's adaptive Gauss-Hermite quadrature with 100 points. Standard errors are glmer's for given variances,
# where it comes within 0.001 of the best. The tables are those of ../logit and
# ../poisson, and toenail beside this file. Run in this folder: Rscript refs_intercepts.R.
suppressMessages({library(lme4); library(glmmTMB); library(jsonlite); library(HSAUR3)})
out <- list(); k <- 0
fit_case <- function(id, family, path, y, parents, random) {
  d <- read.csv(path, stringsAsFactors = TRUE); d$F <- factor(d$F)
  fo <- as.formula(paste(y, "~", paste(c("1", parents), collapse = " + "), "+ (", paste(c("1", random), collapse = " + "), "| F)"))
  tries <- list()
  grab <- function(name, e) { m <- try(suppressWarnings(suppressMessages(e())), silent = TRUE)
    if (!inherits(m, "try-error")) { ll <- if (inherits(m, "glmmTMB")) -m$fit$objective else as.numeric(logLik(m)); if (is.finite(ll)) tries[[name]] <<- list(m = m, ll = ll) } }
  bfgs <- glmmTMBControl(optimizer = optim, optArgs = list(method = "BFGS", control = list(maxit = 5000)))
  of <- list(binomial = binomial(), poisson = poisson(), nbinom2 = nbinom2())[[family]]
  if (family != "nbinom2") {
    grab("glmer_default", function() glmer(fo, d, of))
    grab("glmer_nlminb", function() glmer(fo, d, of, control = glmerControl(optimizer = "nlminbwrap", calc.derivs = FALSE)))
  }
  grab("tmb", function() glmmTMB(fo, d, of)); grab("tmb_bfgs", function() glmmTMB(fo, d, of, control = bfgs))
  ll <- sapply(tries, `[[`, "ll"); b <- names(which.max(ll)); m <- tries[[b]]$m; tmb <- inherits(m, "glmmTMB")
  fe <- if (tmb) fixef(m)$cond else fixef(m); S <- if (tmb) VarCorr(m)$cond$F else VarCorr(m)$F; V <- NULL
  for (n in intersect(names(tries), c("glmer_default", "glmer_nlminb"))) if (ll[n] > max(ll) - 1e-3) V <- as.matrix(vcov(tries[[n]]$m, use.hessian = FALSE))
  r <- nrow(S); S <- matrix(as.numeric(S), r); ev <- eigen(S, only.values = TRUE)$values; q <- length(fe); k <<- k + 1
  agq <- NULL
  if (family == "binomial" && length(random) == 0) {
    g <- suppressWarnings(suppressMessages(glmer(fo, d, of, nAGQ = 100, control = glmerControl(optimizer = "nlminbwrap", calc.derivs = FALSE))))
    agq <- list(logLik = as.numeric(logLik(g)), fixef = I(unname(fixef(g))), sd = sqrt(as.numeric(VarCorr(g)$F)))
  }
  out[[k]] <<- list(id = id, family = family, data = path, response = y, parents = I(parents), random = I(random), n = nrow(d), groups = nlevels(d$F),
    best = b, logLik = unname(ll[b]), all = as.list(round(ll, 5)), n_params = q + r * (r + 1) / 2 + (family == "nbinom2"), coef_names = I(names(fe)),
    fixef = I(unname(fe)), se = if (is.null(V)) NULL else I(unname(sqrt(diag(V)))), Sigma = S, singular = min(ev) < 1e-4 * max(ev, 1e-8), quadrature = agq)
  cat(sprintf("%-28s %-8s r=%d best=%s %.4f\n", id, family, r, b, ll[b]))
}
tn <- data.frame(F = paste0("p", toenail$patientID), severe = as.integer(toenail$outcome == levels(toenail$outcome)[2]), treatment = as.character(toenail$treatment),
  time = toenail$time)
write.csv(format(tn, digits = 9, trim = TRUE), "toenail.csv", row.names = FALSE, quote = FALSE)
fit_case("toenail", "binomial", "toenail.csv", "severe", c("treatment", "time"), character(0))
for (folder in c("logit", "poisson")) for (case in fromJSON(paste0("../", folder, "/cases.json"), simplifyVector = FALSE)$cases) {
  parents <- unlist(case$parents); if (is.null(parents) || !length(parents)) next
  family <- if (is.null(case$family)) "binomial" else case$family
  for (random in list(character(0), parents[1])) if (length(random) < length(parents))
    fit_case(case$id, family, paste0("../", folder, "/", case$data), case$response, parents, random)
}
write_json(list(R = R.version.string, lme4 = as.character(packageVersion("lme4")), glmmTMB = as.character(packageVersion("glmmTMB")),
  note = "see refs_intercepts.R beside this file", cases = out), "cases.json", digits = 10, auto_unbox = TRUE)
