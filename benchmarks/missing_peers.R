# The peers of missing_peers.py, which calls this:
#
#     Rscript benchmarks/missing_peers.R WAY TABLE.csv ...
#
# A table has a column F, the data set, and numbers. "mice" and "mice within" write the completed
# tables beside it (TABLE.csv.1 to TABLE.csv.5), "structural.em" the arcs (TABLE.csv.arcs). A line
# for each table has the seconds that it took, without reading and writing: NaN where it failed.

# eps = 0: by default mice leaves out predictors that are nearly collinear, as many are here.
filled <- function(d) {
  mice::mice(d, m = 5, method = "norm", eps = 0, seed = 1, printFlag = FALSE)
}

# The data set is a factor, and so a fixed effect of each in every regression.
across <- function(d) {
  made <- filled(d)
  lapply(1:5, function(i) mice::complete(made, i))
}

# Nothing is learned from one data set about another.
within_sets <- function(d) {
  parts <- lapply(split(d, d$F), function(part) filled(part[names(part) != "F"]))
  one <- function(name, i) cbind(F = name, mice::complete(parts[[name]], i))
  lapply(1:5, function(i) do.call(rbind, lapply(names(parts), one, i)))
}

# All rows as one data set: bnlearn's scores of gappy data know no random effects.
structural_em <- function(d) {
  set.seed(1)
  net <- bnlearn::structural.em(d[names(d) != "F"], maximize = "hc",
                                maximize.args = list(score = "bic-g"), impute = "bayes-lw")
  bnlearn::arcs(net)
}

say <- function(error) message(conditionMessage(error))
a <- commandArgs(TRUE)
run <- switch(a[1], "mice" = across, "mice within" = within_sets, "structural.em" = structural_em)
package <- if (a[1] == "structural.em") "bnlearn" else "mice"
if (!suppressWarnings(requireNamespace(package, quietly = TRUE))) {
  message("R has no package ", package)
  quit(status = 1)
}
for (file in a[-1]) {
  d <- read.csv(file, stringsAsFactors = TRUE)
  made <- NULL
  seconds <- system.time(tryCatch(made <- suppressWarnings(run(d)), error = say))[["elapsed"]]
  if (is.matrix(made)) write.csv(made, paste0(file, ".arcs"), row.names = FALSE)
  if (is.list(made)) for (i in 1:5) write.csv(made[[i]], paste0(file, ".", i), row.names = FALSE)
  cat(if (is.null(made)) NaN else seconds, "\n")
}
