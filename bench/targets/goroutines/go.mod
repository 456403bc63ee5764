module goroutines

go 1.17
