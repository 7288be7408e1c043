module crossing

go 1.20
