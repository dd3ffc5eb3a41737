# Odds ratios of death in the stroke trial, hospitals in countries: Rscript stroke.R, in this folder.
suppressMessages({library(lme4); library(jsonlite)})
d <- read.csv("../../../docs/examples/data/stroke.csv.gz")
d$y <- d$dead_14_days == "yes"
d$aspirin <- as.numeric(d$aspirin == "yes")
d$heparin <- as.numeric(d$heparin != "none")
control <- glmerControl(optimizer = "bobyqa", optCtrl = list(maxfun = 2e5), calc.derivs = FALSE)
deaths <- d[ave(d$y, d$country, FUN = max) > 0 & ave(d$y, d$country, FUN = min) < 1, ]
cases <- lapply(c("aspirin", "heparin"), function(x) {
  d$x <- d[[x]]
  deaths$x <- deaths[[x]]
  m <- glmer(y ~ x + (1 + x | country) + (1 | hospital), d, family = binomial, control = control)
  l <- glmer(y ~ x + factor(country) + (1 | hospital), deaths, family = binomial, control = control)
  list(treatment = x, logLik = as.numeric(logLik(m)), effect = fixef(m)[["x"]], se = sqrt(vcov(m)["x", "x"]),
       mean = fixef(l)[["x"]], mean_se = sqrt(vcov(l)["x", "x"]))
})
made_with <- paste("R", getRversion(), "lme4", packageVersion("lme4"))
write_json(list(made_with = made_with, cases = cases), "stroke.json", auto_unbox = TRUE, digits = 10, pretty = TRUE)
