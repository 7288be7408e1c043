# Likewise.
unit <- 40000
sixty <- function(x) { for (i in seq_len(6 * unit)) x <- (x * 16807) %% 2147483647; x }
thirty <- function(x) { for (i in seq_len(3 * unit)) x <- (x * 16807) %% 2147483647; x }
ten <- function(x) { for (i in seq_len(unit)) x <- (x * 16807) %% 2147483647; x }
finish <- Sys.time() + as.numeric(commandArgs(TRUE)[1])
x <- 1
while (Sys.time() < finish) x <- ten(thirty(sixty(x)))
