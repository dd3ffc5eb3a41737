# What lme4 predicts for the first rows of ../nested/data, their units known: Rscript predict.R, here.
suppressMessages({library(lme4); library(jsonlite)})
cases <- list()
for (id in c("sim_05_J12_C20_p3_t1", "sim_07_J25_C10_p3_t1", "sim_21_J6_C20_p3_t0")) {
  d <- read.csv(sprintf("../nested/data/%s.csv.gz", id))
  x <- paste(c("1", grep("^x", names(d), value = TRUE)), collapse = " + ")
  f <- as.formula(sprintf("y ~ %s + (%s | F) + (1 | U)", x, x))
  control <- lmerControl(optimizer = "bobyqa", optCtrl = list(maxfun = 2e5), calc.derivs = FALSE)
  m <- lmer(f, d, REML = FALSE, control = control)
  cases[[length(cases) + 1]] <- list(id = id, logLik = as.numeric(logLik(m)), predicted = unname(predict(m))[1:40])
}
made_with <- paste("R", getRversion(), "lme4", packageVersion("lme4"))
write_json(list(made_with = made_with, cases = cases), "predict.json", auto_unbox = TRUE, digits = 12, pretty = TRUE)
