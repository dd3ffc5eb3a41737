# Writes schools.csv from the table bdf of the R package nlme: Rscript docs/examples/data/export.R
bdf <- as.data.frame(nlme::bdf)
schools <- data.frame(
  school = as.character(bdf$schoolNR),
  sex = ifelse(bdf$sex == "1", "girl", "boy"),
  minority = ifelse(bdf$Minority == "Y", "yes", "no"),
  ses = bdf$ses,
  iq = bdf$IQ.verb,
  repeated = ifelse(bdf$repeatgr == "0", "no", "yes"),
  language_7 = bdf$langPRET, arithmetic_7 = bdf$aritPRET,
  language_8 = bdf$langPOST, arithmetic_8 = bdf$aritPOST
)
write.csv(schools, "docs/examples/data/schools.csv", row.names = FALSE, quote = FALSE)
