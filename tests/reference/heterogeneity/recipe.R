# Log-likelihoods (ML, lme4) with one slope the same in all data sets, best of three optimisers:
#   Rscript recipe.R    (in this folder; reads the tables of ../lme/data; needs lme4, jsonlite)
suppressMessages({library(lme4); library(jsonlite)})
best <- function(formula, d) {
  max(sapply(c("bobyqa", "nloptwrap", "Nelder_Mead"), function(o) {
    m <- try(suppressWarnings(suppressMessages(lmer(formula, d, REML = FALSE, control = lmerControl(o, calc.derivs = FALSE)))), silent = TRUE)
    if (inherits(m, "try-error")) -Inf else as.numeric(logLik(m)) }))
}
case <- function(table, group, child, parents) {
  d <- read.csv(gzfile(file.path("..", "lme", "data", paste0(table, ".csv.gz"))))
  shift <- 0
  for (x in c(child, parents)) { s <- sd(d[[x]]); d[[x]] <- (d[[x]] - mean(d[[x]])) / s; if (x == child) shift <- nrow(d) * log(s) }
  f <- function(random) as.formula(paste(child, "~", paste(parents, collapse = "+"), "+ (", paste(c("1", random), collapse = "+"), "|", group, ")"))
  list(table = table, group = group, child = child, parents = I(parents), full = best(f(parents), d) - shift,
       without = I(sapply(parents, function(x) best(f(setdiff(parents, x)), d) - shift, USE.NAMES = FALSE)))
}
cases <- list(
  case("sleepstudy", "Subject", "Reaction", "Days"),
  case("Orthodont", "Subject", "distance", "age"),
  case("crabs", "spsex", "CW", c("CL", "BD")),
  case("iris", "Species", "SL", c("PL", "PW")),
  case("MathAchieve", "School", "MathAch", "SES"))
write(toJSON(cases, auto_unbox = TRUE, digits = 12, pretty = TRUE), "cases.json")
