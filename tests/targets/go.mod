module targets

go 1.18
