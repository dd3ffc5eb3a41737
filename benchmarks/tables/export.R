# Write the tables of the benchmark from R's packages, as gzipped CSV, into the folder given.
# Each keeps the column of data sets, called group, and numeric columns; factors with two levels
# become 0/1, ordered ones their codes. Nothing is downloaded.
#     Rscript benchmarks/tables/export.R benchmarks/tables
out <- commandArgs(trailingOnly = TRUE)[1]
keep <- function(name, data, group, columns) {
  data <- as.data.frame(data)
  table <- data.frame(group = as.character(data[[group]]))
  for (column in columns) {
    x <- data[[column]]
    if (is.factor(x) || is.logical(x) || is.character(x)) x <- as.integer(as.factor(x)) - 1L
    table[[column]] <- as.vector(unclass(x))
  }
  table <- table[complete.cases(table), ]
  file <- gzfile(file.path(out, paste0(name, ".csv.gz")), "w")
  write.csv(table, file, row.names = FALSE)
  close(file)
}
from <- function(name, package) {
  space <- new.env()
  data(list = name, package = package, envir = space)
  space[[name]]
}
n <- function(name) from(name, "nlme")
school <- n("MathAchSchool")
pupils <- merge(n("MathAchieve")[, c("School", "Minority", "Sex", "SES", "MathAch", "MEANSES")],
                school[, c("School", "Size", "PRACAD")], by = "School")
keep("MathAchieve", pupils, "School",
     c("Minority", "Sex", "SES", "MathAch", "MEANSES", "Size", "PRACAD"))
keep("bdf", n("bdf"), "schoolNR", c("repeatgr", "IQ.verb", "IQ.perf", "ses", "langPRET", "langPOST",
     "aritPRET", "aritPOST", "schoolSES", "avg.IQ.verb"))
keep("Orthodont", n("Orthodont"), "Subject", c("distance", "age", "Sex"))
keep("Oxboys", n("Oxboys"), "Subject", c("age", "height"))
keep("Milk", n("Milk"), "Cow", c("protein", "Time"))
keep("Glucose2", n("Glucose2"), "Subject", c("Time", "glucose"))
keep("Earthquake", n("Earthquake"), "Quake", c("Richter", "distance", "soil", "accel"))
keep("Wafer", n("Wafer"), "Wafer", c("voltage", "current"))
keep("Phenobarb", na.omit(n("Phenobarb")[, c("Subject", "Wt", "Apgar", "time", "conc")]), "Subject",
     c("Wt", "Apgar", "time", "conc"))
m <- function(name) from(name, "mlmRev")
keep("Contraception", m("Contraception"), "district", c("use", "age", "urban"))
keep("Exam", m("Exam"), "school", c("normexam", "schavg", "standLRT", "sex"))
keep("Chem97", m("Chem97")[m("Chem97")$lea %in% levels(m("Chem97")$lea)[1:40], ], "lea",
     c("score", "gender", "age", "gcsescore"))
keep("Hsb82", m("Hsb82"), "school", c("mAch", "cses", "meanses", "minrty", "sx"))
keep("ScotsSec", m("ScotsSec"), "second", c("verbal", "attain", "sex", "social"))
s <- function(name) from(name, "MASS")
keep("Boston", s("Boston"), "rad", c("crim", "zn", "indus", "nox", "rm", "age", "dis", "tax",
     "ptratio", "lstat", "medv"))
keep("UScereal", s("UScereal"), "mfr", c("calories", "protein", "fat", "sodium", "fibre", "carbo",
     "sugars", "potassium"))
keep("Cars93", s("Cars93"), "Type", c("Price", "MPG.city", "EngineSize", "Horsepower", "Weight",
     "Width", "Fuel.tank.capacity"))
keep("birthwt", s("birthwt"), "race", c("low", "age", "lwt", "smoke", "bwt"))
keep("crabs", s("crabs"), "sp", c("FL", "RW", "CL", "CW", "BD"))
keep("whiteside", s("whiteside"), "Insul", c("Temp", "Gas"))
l <- function(name) from(name, "lme4")
keep("sleepstudy", l("sleepstudy"), "Subject", c("Reaction", "Days"))
keep("InstEval", l("InstEval")[as.integer(l("InstEval")$d) <= 60, ], "d",
     c("y", "studage", "lectage", "service"))
keep("VerbAgg", l("VerbAgg")[as.integer(l("VerbAgg")$id) <= 60, ], "id", c("Anger", "resp", "btype"))
keep("ChickWeight", from("ChickWeight", "datasets"), "Diet", c("weight", "Time"))
keep("iris", from("iris", "datasets"), "Species",
     c("Sepal.Length", "Sepal.Width", "Petal.Length", "Petal.Width"))
keep("airquality", from("airquality", "datasets"), "Month", c("Ozone", "Solar.R", "Wind", "Temp"))
keep("quakes", transform(from("quakes", "datasets"), zone = cut(long, 6, labels = 1:6)), "zone",
     c("lat", "depth", "mag", "stations"))
keep("esoph", from("esoph", "datasets"), "agegp", c("ncases", "ncontrols"))
# Tables with columns of all kinds, whose factors stay as they are; counted cells become rows.
mixed <- function(name, data, group, columns) {
  data <- as.data.frame(data)
  table <- data.frame(group = as.character(data[[group]]))
  for (column in columns) {
    x <- data[[column]]
    table[[column]] <- if (is.factor(x)) as.character(x) else as.vector(unclass(x))
  }
  file <- gzfile(file.path(out, "mixed", paste0(name, ".csv.gz")), "w")
  write.csv(table[complete.cases(table), ], file, row.names = FALSE)
  close(file)
}
counted <- function(table) {
  cells <- as.data.frame(table)
  cells[rep(seq_len(nrow(cells)), cells$Freq), ]
}
dir.create(file.path(out, "mixed"), showWarnings = FALSE)
mixed("Contraception", m("Contraception"), "district", c("use", "livch", "age", "urban"))
mixed("VerbAgg", l("VerbAgg"), "id", c("r2", "btype", "situ", "mode", "Anger", "Gender"))
mixed("bdf", n("bdf"), "schoolNR", c("repeatgr", "sex", "Minority", "IQ.verb", "IQ.perf", "ses",
      "langPRET", "langPOST", "aritPRET", "aritPOST"))
mixed("Titanic", counted(Titanic), "Class", c("Survived", "Sex", "Age"))
mixed("UCBAdmissions", counted(UCBAdmissions), "Dept", c("Admit", "Gender"))
# Tables that had no part in any choice: factors stay as they are, ordered ones become their codes.
asis <- function(name, data, group, columns) {
  data <- as.data.frame(data)
  table <- data.frame(group = as.character(data[[group]]))
  for (column in columns) {
    x <- data[[column]]
    table[[column]] <- if (is.factor(x) && !is.ordered(x)) as.character(x) else as.vector(unclass(x))
  }
  table <- table[complete.cases(table), ]
  file <- gzfile(file.path(out, paste0(name, ".csv.gz")), "w")
  write.csv(table, file, row.names = FALSE)
  close(file)
}
asis("CHFLS", from("CHFLS", "HSAUR3"), "R_region", c("R_age", "R_edu", "R_income", "R_health",
     "R_height", "R_happy", "A_height", "A_edu", "A_income"))
asis("Fatalities", from("Fatalities", "AER"), "state", c("spirits", "unemp", "income", "beertax",
     "drinkage", "dry", "youngdrivers", "miles", "breath", "jail", "service", "fatal"))
asis("Grunfeld", from("Grunfeld", "AER"), "firm", c("invest", "value", "capital", "year"))
asis("CPS1985", from("CPS1985", "AER"), "occupation", c("wage", "education", "experience",
     "ethnicity", "region", "gender", "sector", "union", "married"))
asis("lung", survival::lung, "inst", c("time", "status", "age", "sex", "ph.ecog", "ph.karno",
     "pat.karno", "meal.cal", "wt.loss"))
