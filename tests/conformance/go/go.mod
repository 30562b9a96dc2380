module conformance

go 1.25

require toolward v0.0.0

replace toolward => ./toolward
