# Means over these data sets of ordered outcomes: Rscript ordinal.R, in this folder.
# outcomes.csv: patients of the International Stroke Trial by country, aspirin, and outcome at six months.
suppressMessages({library(ordinal); library(jsonlite)})
d <- read.csv("outcomes.csv")
d$y <- factor(d$outcome, c("dead", "dependent", "not recovered", "recovered"), ordered = TRUE)
m <- clm(y ~ factor(country) + aspirin, data = d, weights = patients)
row <- summary(m)$coefficients["aspirinyes", ]
stroke <- list(rows = sum(d$patients), mean = row[["Estimate"]], se = row[["Std. Error"]], p_value = row[["Pr(>|z|)"]])
units <- lapply(c("sim_2_J6_C12_p1_K4", "sim_3_J12_C8_p1_K5", "sim_8_J6_C15_p1_K6"), function(id) {
  data <- paste0("../ordinal_units/data/", id, ".csv.gz"); d <- read.csv(data)
  d$y <- factor(d$y, ordered = TRUE); d$F <- factor(d$F); d$U <- factor(d$U)
  d$arm <- as.numeric(d$x1 > 0)
  m <- clmm(y ~ F + arm + (1 | U), data = d)
  list(data = data, mean = m$beta[["arm"]], se = sqrt(vcov(m)["arm", "arm"]))
})
made_with <- paste("R", getRversion(), "ordinal", packageVersion("ordinal"))
write_json(list(made_with = made_with, stroke = stroke, units = units), "ordinal.json", auto_unbox = TRUE, digits = 10, pretty = TRUE)
