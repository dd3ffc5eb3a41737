# Tests of equal slopes and residual variances by R's own functions, and lmerTest's standard errors
# and degrees of freedom (Satterthwaite, REML) of slopes that vary:
#   Rscript recipe.R    (in this folder; reads the tables of ../lme/data; needs lmerTest, jsonlite)
suppressMessages({library(lmerTest); library(jsonlite)})
case <- function(table, group, child, parents) {
  d <- read.csv(gzfile(file.path("..", "lme", "data", paste0(table, ".csv.gz"))))
  d$g <- factor(d[[group]])
  model <- function(own, common) lm(as.formula(paste(child, "~ g",
    paste(sprintf("+ g:%s", own), collapse = " "), paste(sprintf("+ %s", common), collapse = " "))), d)
  full <- model(parents, character(0))
  tests <- lapply(parents, function(x) anova(model(setdiff(parents, x), x), full)[2, ])
  alone <- as.formula(paste(child, "~", paste(parents, collapse = "+")))
  bartlett <- bartlett.test(lapply(split(d, d$g), function(rows) lm(alone, rows)))
  welch <- oneway.test(as.formula(paste(child, "~ g")), d)
  for (x in parents) d[[x]] <- d[[x]] - mean(d[[x]])
  mixed <- summary(suppressMessages(lmer(as.formula(paste(child, "~", paste(parents, collapse = "+"),
    "+ (", paste(c("1", parents), collapse = "+"), "| g)")), d)))$coefficients[-1, , drop = FALSE]
  list(table = table, group = group, child = child, parents = I(parents),
       F = I(sapply(tests, function(t) t$F)), df1 = I(sapply(tests, function(t) t$Df)),
       df2 = full$df.residual, p = I(sapply(tests, function(t) t$"Pr(>F)")),
       bartlett = unname(bartlett$statistic), bartlett_p = bartlett$p.value,
       welch = unname(welch$statistic), welch_df2 = unname(welch$parameter[2]), welch_p = welch$p.value,
       lmerTest_se = I(unname(mixed[, "Std. Error"])), lmerTest_df = I(unname(mixed[, "df"])))
}
cases <- list(
  case("sleepstudy", "Subject", "Reaction", "Days"),
  case("Orthodont", "Subject", "distance", "age"),
  case("crabs", "spsex", "CW", c("CL", "BD")),
  case("iris", "Species", "SL", c("PL", "PW")),
  case("MathAchieve", "School", "MathAch", "SES"))
write(toJSON(cases, auto_unbox = TRUE, digits = NA, pretty = TRUE), "cases.json")
