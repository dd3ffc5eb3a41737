# Rscript ordinal_units.R, in this folder: ordered levels with units inside data sets.
suppressMessages({library(ordinal); library(jsonlite)}); cases <- list()
save <- function() write_json(list(made_with = paste("R", getRversion(), "ordinal", packageVersion("ordinal")),
  model = "clmm(y ~ 1 + x + (1 + x | F) + (1 | U)), Laplace; the better one of two optimisers", cases = cases),
  "cases.json", auto_unbox = TRUE, digits = 12, pretty = TRUE)
fit <- function(f, d, ctl) tryCatch(suppressWarnings(clmm(f, data = d, control = ctl)), error = function(e) NULL)
add <- function(id, d, y, x, outer, inner) {
  d <- d[, c(y, x, outer, inner)]; d <- d[complete.cases(d), ]
  names(d) <- c("y", if (length(x)) paste0("x", seq_along(x)), "F", "U")
  d$F <- factor(d$F); d$U <- factor(paste(d$F, d$U, sep = "/")); d$y <- factor(as.integer(factor(d$y)), ordered = TRUE)
  xs <- grep("^x", names(d), value = TRUE); r <- paste(c("1", xs), collapse = "+")
  f <- as.formula(paste0("y ~ ", r, " + (", r, " | F) + (1 | U)"))
  t <- system.time(fits <- list(fit(f, d, clmm.control(maxIter = 300, gradTol = 1e-6)),
    fit(f, d, clmm.control(method = "nlminb", maxIter = 300, gradTol = 1e-6))))[3]
  fits <- Filter(function(m) !is.null(m) && is.finite(logLik(m)), fits)
  if (!length(fits)) { cat(id, "failed\n"); return(invisible()) }
  m <- fits[[which.max(sapply(fits, logLik))]]
  one <- fit(as.formula(paste0("y ~ ", r, " + (", r, " | F)")), d, clmm.control(maxIter = 300))
  whole <- fit(as.formula(paste0("y ~ ", r, " + (1 | U)")), d, clmm.control(maxIter = 300))
  out <- d; out$y <- as.integer(as.character(d$y)); con <- gzfile(paste0("data/", id, ".csv.gz"), "w")
  write.csv(out, con, row.names = FALSE, quote = FALSE); close(con)
  v <- VarCorr(m)
  cases[[length(cases) + 1]] <<- list(id = id, data = paste0("data/", id, ".csv.gz"), predictors = I(xs), n = nrow(d),
    outers = nlevels(d$F), inners = nlevels(d$U), levels = nlevels(d$y), logLik = as.numeric(logLik(m)),
    logLik_without_units = as.numeric(logLik(one)), logLik_units_alone = as.numeric(logLik(whole)),
    thresholds_units_alone = as.list(unname(whole$alpha)), beta_units_alone = as.list(whole$beta),
    unit_variance_alone = as.numeric(VarCorr(whole)$U), thresholds = as.list(unname(m$alpha)), beta = as.list(m$beta),
    Sigma = unname(as.matrix(v$F)), unit_variance = as.numeric(v$U), gradient = max(abs(m$gradient)), seconds = as.numeric(t))
  save(); cat(id, nrow(d), as.numeric(logLik(m)), as.numeric(logLik(one)), as.numeric(v$U), max(abs(m$gradient)), round(t, 1), "\n")
}
set.seed(11)
for (i in 1:8) {
  J <- c(4, 6, 12, 8, 5, 15, 10, 6)[i]; C <- c(20, 12, 8, 10, 25, 6, 10, 15)[i]; p <- c(0, 1, 1, 2, 1, 0, 1, 1)[i]
  K <- c(3, 4, 5, 3, 2, 4, 4, 6)[i]; sd <- c(.6, .5, .8, .4, .6, .5, .7, 0)[i]; tau <- c(1, .8, 1.2, .7, 1, .6, 0, 1)[i]
  d <- do.call(rbind, lapply(1:J, function(j) { b <- rnorm(p, .7, sd / 2); a <- rnorm(1, 0, sd)
    do.call(rbind, lapply(1:C, function(c) { n <- 1 + rpois(1, 3); x <- matrix(round(rnorm(n * max(1, p)), 3), n)
      e <- a + (if (p) x[, 1:p, drop = FALSE] %*% b else 0) + rnorm(1, 0, tau) + rlogis(n)
      data.frame(y = cut(as.numeric(e), c(-Inf, seq(-1.5, 1.5, length.out = K - 1), Inf)[if (K == 2) c(1, 2, 3) else TRUE], labels = FALSE), x, g = j, u = c) })) }))
  names(d) <- c("y", paste0("v", 1:max(1, p)), "g", "u")
  add(sprintf("sim_%d_J%d_C%d_p%d_K%d", i, J, C, p, K), d, "y", if (p) paste0("v", 1:p) else character(0), "g", "u")
}
data(soup); s <- soup; s$p <- as.numeric(s$PROD != "Ref"); keep <- levels(s$RESP)[seq(1, nlevels(s$RESP), 3)]
add("soup", s[s$RESP %in% keep, ], "SURENESS", "p", "LOCATION", "RESP")
