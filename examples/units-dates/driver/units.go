package main

import (
	"math/big"
	"strings"
)

// dimension is the powers of the base units.
type dimension [6]int

const (
	length = iota
	mass
	duration
	temperature
	information
	current
)

// baseNames are the units that results come in where the expression asks for no other.
var baseNames = [6]string{"m", "kg", "s", "K", "B", "A"}

func base(kind int) dimension {
	var d dimension
	d[kind] = 1
	return d
}

func (d dimension) times(other dimension, power int) dimension {
	for i := range d {
		d[i] += other[i] * power
	}
	return d
}

func (d dimension) power(power int) dimension { return dimension{}.times(d, power) }

// A unit is how many base units one of it is. The value in base units of an offset
// unit, such as °C, is (value + offset) * factor.
type unit struct {
	name   string
	dim    dimension
	factor *big.Rat
	offset *big.Rat
}

// prefixes of SI, and of IEC for information.
var prefixes = []struct {
	symbol, word string
	factor       *big.Rat
}{
	{"da", "deca", ratio("10")}, {"K", "kilo", ratio("1000")},
	{"Q", "quetta", ratio("1e30")}, {"R", "ronna", ratio("1e27")}, {"Y", "yotta", ratio("1e24")},
	{"Z", "zetta", ratio("1e21")}, {"E", "exa", ratio("1e18")}, {"P", "peta", ratio("1e15")},
	{"T", "tera", ratio("1e12")}, {"G", "giga", ratio("1e9")}, {"M", "mega", ratio("1e6")},
	{"k", "kilo", ratio("1e3")}, {"h", "hecto", ratio("100")}, {"d", "deci", ratio("1/10")},
	{"c", "centi", ratio("1/100")}, {"m", "milli", ratio("1e-3")}, {"u", "micro", ratio("1e-6")},
	{"µ", "micro", ratio("1e-6")}, {"μ", "micro", ratio("1e-6")}, {"n", "nano", ratio("1e-9")},
	{"p", "pico", ratio("1e-12")}, {"f", "femto", ratio("1e-15")}, {"a", "atto", ratio("1e-18")},
	{"Ki", "kibi", ratio("1024")}, {"Mi", "mebi", ratio("1048576")}, {"Gi", "gibi", ratio("1073741824")},
	{"Ti", "tebi", ratio("1099511627776")}, {"Pi", "pebi", ratio("1125899906842624")},
	{"Ei", "exbi", ratio("1152921504606846976")},
}

// definitions has a line for each unit: its symbols, the first of which results are
// shown with; its words; and what one of it is, in units defined before it. `~` marks
// symbols and words that take prefixes.
const definitions = `
~m | ~metre ~meter |
~g | ~gram ~gramme |
~s sec | ~second |
K | kelvin |
~B | ~byte |
~A | ~ampere ~amp |

ft | foot feet | 0.3048 m
in | inch inches | 0.0254 m
yd | yard | 3 ft
mi | mile | 5280 ft
thou | mil | 0.001 in
nmi NM | nautical_mile | 1852 m
au AU | astronomical_unit | 149597870700 m
ly | light_year lightyear | 9460730472580800 m
Å | angstrom ångström | 1e-10 m
furlong | furlong | 660 ft
fathom | fathom | 6 ft

ha | hectare | 10000 m^2
acre | acre | 4046.8564224 m^2
~L ~l | ~litre ~liter | 0.001 m^3
gal | gallon | 3.785411784 L
qt | quart | 0.25 gal
pt | pint | 0.125 gal
cup | cup | 0.0625 gal
fl_oz floz | fluid_ounce | 0.0078125 gal
tbsp | tablespoon | 0.5 fl_oz
tsp | teaspoon | 1/3 tbsp
impgal | imperial_gallon | 4.54609 L
imppt | imperial_pint | 0.125 impgal
bbl | barrel | 42 gal

~t | ~tonne | 1000 kg
lb lbs | pound | 0.45359237 kg
oz | ounce | 1/16 lb
st | stone | 14 lb
ton | short_ton | 2000 lb
long_ton | long_ton | 2240 lb
gr | grain | 1/7000 lb
ct | carat | 0.0002 kg
ozt | troy_ounce | 31.1034768 g

min | minute | 60 s
h hr hrs | hour | 60 min
d | day | 24 h
wk | week | 7 d
yr | year | 365.25 d
mo | month | 1/12 yr

mph | | mi/h
kph kmh | | km/h
kn kt | knot | nmi/h
fps | | ft/s
c | speed_of_light | 299792458 m/s
g0 | standard_gravity | 9.80665 m/s^2

~Hz | ~hertz | 1/s
rpm | | 1/min
~N | ~newton | kg*m/s^2
lbf | pound_force | lb*g0
kgf | | kg*g0
~Pa | ~pascal | N/m^2
~bar | ~bar | 100000 Pa
atm | atmosphere | 101325 Pa
psi | | lbf/in^2
Torr | torr | 1/760 atm
mmHg | | 133.322387415 Pa
inHg | | 3386.38815789 Pa
~J | ~joule | N*m
~W | ~watt | J/s
~Wh | ~watt_hour | W*h
~cal | ~calorie | 4.184 J
~eV | ~electronvolt | 1.602176634e-19 J
BTU Btu | btu | 1055.05585262 J
hp | horsepower | 550 ft*lbf/s
PS | | 75 kgf*m/s
~V | ~volt | W/A
~Ω | ~ohm | V/A
~C | ~coulomb | A*s
~Ah | | A*h
~F | ~farad | C/V

~bit ~b | ~bit | 1/8 B
~bps | | bit/s
baud | baud | bit/s

% | percent | 0.01
ppm | | 1e-6
dozen | dozen | 12
pi π | | 3.14159265358979323846264338327950288
deg ° | degree | pi/180
rad | radian | 1
turn | revolution | 2*pi
`

// offsets have a zero of their own.
var offsets = []unit{
	{"°C", base(temperature), ratio("1"), ratio("273.15")},
	{"°F", base(temperature), ratio("5/9"), ratio("459.67")},
}

var (
	// named has every unit by its names.
	named = map[string]unit{}
	// prefixed has those that take a prefix: by their symbols, and by their words.
	prefixed = [2]map[string]unit{{}, {}}
	// shown is the unit that a result of a dimension comes in.
	shown = map[dimension]string{}
)

// The definitions are read when the driver is built: its bundle.toml has `snapshot = true`.
func init() {
	define()
	nameKinds()
}

func define() {
	for i, name := range []string{"°C", "℃", "degC", "celsius", "Celsius", "°F", "℉", "degF", "fahrenheit", "Fahrenheit"} {
		named[name] = offsets[i/5]
	}
	kind := 0
	for line := range strings.SplitSeq(strings.TrimSpace(definitions), "\n") {
		if line == "" {
			continue
		}
		parts := strings.Split(line, "|")
		symbols, words, meaning := strings.Fields(parts[0]), strings.Fields(parts[1]), strings.TrimSpace(parts[2])
		var u unit
		if meaning == "" {
			u.dim, u.factor = base(kind), ratio("1")
			kind++
		} else {
			value, err := evaluate(meaning)
			if err != nil {
				panic(line + ": " + err.Error())
			}
			u.dim, u.factor = value.dim, value.number
		}
		if symbols[0] == "~g" {
			// The base unit is the one with a prefix.
			u.factor = ratio("1/1000")
		}
		for column, names := range [][]string{symbols, words} {
			for _, name := range names {
				bare := strings.TrimPrefix(name, "~")
				u.name = strings.TrimPrefix(symbols[0], "~")
				spellings := []string{bare}
				if column == 0 {
					u.name = bare
				} else {
					spellings = append(spellings, bare+"s")
				}
				for _, spelling := range spellings {
					if _, taken := named[spelling]; !taken {
						named[spelling] = u
					}
					if bare != name {
						prefixed[column][spelling] = u
					}
				}
			}
		}
	}
	for _, name := range []string{"N", "Pa", "J", "W", "V", "Ω", "F", "C", "Hz"} {
		shown[named[name].dim] = name
	}
}

// lookUp finds a unit by its name, with a prefix where it takes one.
func lookUp(name string) (unit, bool) {
	if u, found := named[name]; found {
		return u, true
	}
	for _, prefix := range prefixes {
		for column, start := range []string{prefix.symbol, prefix.word} {
			rest, cut := strings.CutPrefix(name, start)
			if u, found := prefixed[column][rest]; cut && found && fits(prefix.symbol, prefix.factor, u) {
				u.factor = new(big.Rat).Mul(u.factor, prefix.factor)
				u.name = prefix.symbol + u.name
				return u, true
			}
		}
	}
	// `Kilometres`, but never `MB` for `mb`.
	if lower := strings.ToLower(name); lower != name && len(name) > 4 {
		return lookUp(lower)
	}
	return unit{}, false
}

// fits is whether a unit takes a prefix: there are no millibytes, and no kibimetres.
func fits(symbol string, factor *big.Rat, u unit) bool {
	ofInformation := u.dim[information] == 1
	if ofInformation {
		return factor.Cmp(ratio("1000")) >= 0
	}
	return symbol != "K" && !strings.HasSuffix(symbol, "i")
}

func ratio(text string) *big.Rat {
	value, ok := new(big.Rat).SetString(text)
	if !ok {
		panic(text)
	}
	return value
}
