# A continuous child with a mixed-effects model of its own in each configuration of its discrete parents:
# y ~ 1 + x + (1 + x | F) by ML on the rows of each, x the continuous parents; data of ../ancova.
# Best of lmer with four optimisers. Rscript refs_conditional.R, in this folder.
suppressMessages({library(lme4); library(jsonlite)})
cases <- fromJSON("../ancova/cases.json", simplifyVector = FALSE)$cases
wanted <- c("opt_bw_treat", "opt_d5", "opt_bw_ge", "exam", "egs_ret", "bdf_sex", "math", "crabs")
control <- function(o) lmerControl(optimizer = o, calc.derivs = FALSE, check.nobs.vs.nRE = "ignore",
  optCtrl = if (o == "nloptwrap") list(maxeval = 1e5, xtol_abs = 1e-10, ftol_abs = 1e-10) else if (o == "bobyqa") list(maxfun = 1e5) else list())
out <- list()
for (case in cases) if (case$id %in% wanted) {
  d <- read.csv(file.path("../ancova", case$data), stringsAsFactors = TRUE)
  parents <- unlist(case$parents); discrete <- parents[sapply(parents, function(p) is.factor(d[[p]]))]
  rhs <- paste(c("1", setdiff(parents, discrete)), collapse = " + ")
  formula <- as.formula(paste(case$response, "~", rhs, "+ (", rhs, "| F)")); parts <- list()
  for (rows in split(d, d[rev(discrete)], drop = TRUE)) { # the last discrete parent's level changes fastest
    best <- NULL
    for (o in c("nloptwrap", "bobyqa", "nlminbwrap", "Nelder_Mead")) {
      m <- try(suppressWarnings(suppressMessages(lmer(formula, rows, REML = FALSE, control = control(o)))), silent = TRUE)
      if (!inherits(m, "try-error") && (is.null(best) || logLik(m) > logLik(best))) best <- m
    }
    own <- sapply(discrete, function(p) as.character(rows[[p]][1])); names(own) <- discrete
    parts[[length(parts) + 1]] <- list(levels = as.list(own), n = nrow(rows), groups = nlevels(droplevels(rows$F)),
      logLik = as.numeric(logLik(best)), fixef = I(unname(fixef(best))), sigma = sigma(best), singular = isSingular(best))
  }
  out[[length(out) + 1]] <- list(id = case$id, data = case$data, response = case$response, parents = I(parents), discrete = I(discrete), parts = parts)
  cat(case$id, sum(sapply(parts, `[[`, "logLik")), "\n")
}
write_json(list(R = R.version.string, lme4 = as.character(packageVersion("lme4")), cases = out), "cases.json", digits = 10, auto_unbox = TRUE, pretty = TRUE)
