module service

go 1.17
