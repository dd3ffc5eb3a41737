# Means over these data sets, of tables of ../nested and of visits.csv: Rscript means.R, in this folder.
suppressMessages({library(lme4); library(jsonlite)})
cases <- list()
add <- function(data, x, family) {
  d <- read.csv(data)
  d$x <- d[[x]]
  keep <- ave(d$y, d$F, FUN = max) > 0
  if (family == "binomial") keep <- keep & ave(d$y, d$F, FUN = min) < 1
  d <- d[keep, ]
  f <- y ~ x + factor(F) + (1 | U)
  control <- glmerControl(optimizer = "bobyqa", optCtrl = list(maxfun = 2e5))
  m <- if (family == "gaussian") lmer(f, d) else glmer(f, d, family = family, control = control)
  cases[[length(cases) + 1]] <<- list(data = data, cause = x, family = family, mean = fixef(m)[["x"]])
}
add("../nested/data/star_read.csv.gz", "x1", "gaussian")
add("../nested/data/sim_19_J6_C4_p1_t1.csv.gz", "x1", "gaussian")
add("../nested/data/sim_13_J6_C20_p2_t0.4.csv.gz", "x2", "gaussian")
add("../nested/data/gsim_5_binomial_J6_p1.csv.gz", "x1", "binomial")
add("visits.csv", "x1", "poisson")
made_with <- paste("R", getRversion(), "lme4", packageVersion("lme4"))
write_json(list(made_with = made_with, cases = cases), "means.json", auto_unbox = TRUE, digits = 12, pretty = TRUE)
