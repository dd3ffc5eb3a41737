# Scores of families for mixed.py, which calls this and keeps it running.
#
# Lines from standard input, with tabs: "table FILE.csv" reads a table with a column F, the data set;
# "family CHILD PARENT ..." answers with a BIC, higher is better. All coefficients are random, with a
# full covariance. Columns of text have two levels. A fit that fails scores -Inf.

suppressMessages(library(lme4))
ignore <- list(check.nobs.vs.nlev = "ignore", check.nobs.vs.nRE = "ignore",
               check.nobs.vs.rankZ = "ignore", check.conv.singular = "ignore", calc.derivs = FALSE)

scored <- function(d, child, parents) {
  terms <- paste(c("1", parents), collapse = " + ")
  formula <- as.formula(sprintf("%s ~ %s + (%s | F)", child, terms, terms))
  q <- length(parents) + 1
  discrete <- is.factor(d[[child]])
  fit <- if (discrete) glmer(formula, d, binomial, nAGQ = 1, control = do.call(glmerControl, ignore))
         else lmer(formula, d, REML = FALSE, control = do.call(lmerControl, ignore))
  params <- q + q * (q + 1) / 2 + !discrete
  as.numeric(logLik(fit)) - log(nrow(d)) / 2 * params
}

input <- file("stdin", "r")
while (length(line <- readLines(input, 1)) > 0) {
  words <- strsplit(line, "\t")[[1]]
  if (words[1] == "table") {
    d <- read.csv(words[2], stringsAsFactors = TRUE)
    answer <- "read"
  } else {
    value <- tryCatch(suppressMessages(suppressWarnings(scored(d, words[2], words[-(1:2)]))),
                      error = function(e) -Inf)
    answer <- format(value, digits = 15)
  }
  cat(answer, "\n", sep = "")
  flush(stdout())
}
