module frames

go 1.16
