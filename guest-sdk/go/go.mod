module toolward

go 1.25
