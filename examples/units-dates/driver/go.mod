module driver

go 1.25

require toolward v0.0.0

// The library comes with the driver, so no module proxy is asked for it.
replace toolward => ./toolward
