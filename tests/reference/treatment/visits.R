# Counts of visits.csv, Poisson given patients: Rscript visits.R, in this folder.
set.seed(2026)
patient <- rep(1:72, 1 + rpois(72, 2)); clinic <- (patient - 1) %/% 12
arm <- ifelse(clinic %% 2 == 0, rbinom(72, 1, .5)[patient], rbinom(length(patient), 1, .5))
y <- rpois(length(patient), exp(rnorm(6, .5, .5)[clinic + 1] + rnorm(72)[patient] + .7 * arm))
write.csv(data.frame(y = y, x1 = arm, F = clinic, U = patient), "visits.csv", row.names = FALSE)
