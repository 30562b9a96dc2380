package main

import (
	"encoding/json"
	"math"
	"math/big"
	"strconv"
	"strings"

	"toolward"
)

type expression struct {
	Expression string `json:"expression"`
}

type result struct {
	Value json.Number `json:"value"`
	Unit  string      `json:"unit"`
	Text  string      `json:"text"`
	Kind  string      `json:"kind"`
}

func calculate(call *toolward.Call[expression]) (result, error) {
	value, err := evaluate(call.Input.Expression)
	if err != nil {
		return result{}, err
	}
	return value.shown()
}

// A quantity is a number with a dimension, in base units; or, where absolute is there, a
// temperature on its scale, with which nothing can be done but converting it.
type quantity struct {
	number   *big.Rat
	dim      dimension
	unit     *unit
	absolute *unit
}

// Bits of a fraction's two numbers: time and memory are bounded by it.
const maxBits = 1 << 13

// Powers of a base unit.
const maxPower = 30

// kinds are the names of dimensions, each with an expression that has it.
var kinds = map[dimension]string{}

func nameKinds() {
	for kind, example := range map[string]string{
		"number": "1", "length": "m", "mass": "kg", "time": "s", "temperature": "K",
		"information": "B", "current": "A", "area": "m^2", "volume": "m^3", "speed": "m/s",
		"acceleration": "m/s^2", "force": "N", "pressure": "Pa", "energy": "J", "power": "W",
		"frequency": "Hz", "voltage": "V", "resistance": "Ω", "charge": "C", "capacitance": "F",
		"data_rate": "B/s", "density": "kg/m^3", "flow": "m^3/s",
	} {
		value, err := evaluate(example)
		if err != nil {
			panic(err)
		}
		kinds[value.dim] = kind
	}
}

func (d dimension) kind() string {
	if kind, known := kinds[d]; known {
		return kind
	}
	return "other"
}

// shown is the quantity in its unit, or else in the one for its dimension.
func (q quantity) shown() (result, error) {
	number, name := q.number, ""
	switch {
	case q.absolute != nil:
		name = q.absolute.name
	case q.unit != nil:
		number, name = new(big.Rat).Quo(number, q.unit.factor), q.unit.name
	case shown[q.dim] != "":
		name = shown[q.dim]
	default:
		name = q.dim.composed()
	}
	value, _ := number.Float64()
	if math.IsInf(value, 0) {
		return result{}, tooLarge()
	}
	// With an exponent no reader takes it for an integer that it has to keep exactly.
	format := byte('f')
	if size := math.Abs(value); size >= 1<<53 || size < 1e-6 && size > 0 {
		format = 'e'
	}
	written := strconv.FormatFloat(value, format, -1, 64)
	text := strings.TrimSpace(strconv.FormatFloat(value, 'g', 12, 64) + " " + name)
	return result{json.Number(written), name, text, q.dim.kind()}, nil
}

// composed names a dimension by the base units, such as `kg*m/s^2`.
func (d dimension) composed() string {
	var above, below []string
	for i, power := range d {
		name := baseNames[i]
		if power > 1 || power < -1 {
			name += "^" + strconv.Itoa(max(power, -power))
		}
		if power > 0 {
			above = append(above, name)
		} else if power < 0 {
			below = append(below, name)
		}
	}
	name := strings.Join(above, "*")
	if name == "" && len(below) > 0 {
		name = "1"
	}
	for _, unit := range below {
		name += "/" + unit
	}
	return name
}

func (q quantity) plus(other quantity, sign int64) (quantity, error) {
	if err := q.usable(other); err != nil {
		return q, err
	}
	if q.dim != other.dim {
		return q, toolward.Errorf("units:mismatch", "%s and %s can't be added or subtracted", q.dim.kind(), other.dim.kind())
	}
	if q.unit == nil {
		q.unit = other.unit
	}
	signed := new(big.Rat).Mul(other.number, big.NewRat(sign, 1))
	q.number = signed.Add(q.number, signed)
	return q.bounded()
}

// times multiplies, or divides where power is -1.
func (q quantity) times(other quantity, power int) (quantity, error) {
	if err := q.usable(other); err != nil {
		return q, err
	}
	factor := other.number
	if power < 0 {
		if factor.Sign() == 0 {
			return q, toolward.Errorf("units:division_by_zero", "a division by zero")
		}
		factor = new(big.Rat).Inv(factor)
	}
	none := dimension{}
	switch {
	case other.dim == none && q.dim != none:
	case q.dim == none && other.dim != none && power > 0:
		q.unit = other.unit
	default:
		q.unit = nil
	}
	q.number = new(big.Rat).Mul(q.number, factor)
	q.dim = q.dim.times(other.dim, power)
	return q.bounded()
}

func (q quantity) raised(power int) (quantity, error) {
	if err := q.usable(q); err != nil {
		return q, err
	}
	if power < 0 && q.number.Sign() == 0 {
		return q, toolward.Errorf("units:division_by_zero", "a negative power of zero")
	}
	if q.bits()*max(power, -power) > 2*maxBits {
		return q, tooLarge()
	}
	exponent := big.NewInt(int64(max(power, -power)))
	above := new(big.Int).Exp(q.number.Num(), exponent, nil)
	below := new(big.Int).Exp(q.number.Denom(), exponent, nil)
	if power < 0 {
		above, below = below, above
	}
	q.number = new(big.Rat).SetFrac(above, below)
	q.dim = q.dim.power(power)
	if power != 1 {
		q.unit = q.unit.raised(power)
	}
	return q.bounded()
}

// raised keeps `cm^2` as a unit to show.
func (u *unit) raised(power int) *unit {
	if u == nil || power == 0 || strings.ContainsAny(u.name, "*/^") {
		return nil
	}
	one := quantity{number: u.factor, dim: u.dim}
	squared, err := one.raised(power)
	if err != nil {
		return nil
	}
	return &unit{u.name + "^" + strconv.Itoa(power), squared.dim, squared.number, nil}
}

// in is the quantity in another unit.
func (q quantity) in(target quantity) (quantity, error) {
	if q.dim != target.dim {
		return q, toolward.Errorf("units:mismatch", "%s can't be converted to %s", q.dim.kind(), target.dim.kind())
	}
	if from := q.absolute; from != nil {
		number := new(big.Rat).Add(q.number, from.offset)
		q = quantity{number: number.Mul(number, from.factor), dim: q.dim}
	}
	if to := target.absolute; to != nil {
		number := new(big.Rat).Quo(q.number, to.factor)
		return quantity{number: number.Sub(number, to.offset), dim: q.dim, absolute: to}.bounded()
	}
	q.unit = target.unit
	return q.bounded()
}

func (q quantity) usable(other quantity) error {
	if q.absolute != nil || other.absolute != nil {
		return toolward.Errorf("units:temperature", "°C and °F have their zero elsewhere: convert them to K before calculating")
	}
	return nil
}

func (q quantity) bits() int { return q.number.Num().BitLen() + q.number.Denom().BitLen() }

func (q quantity) bounded() (quantity, error) {
	for _, power := range q.dim {
		if power > maxPower || power < -maxPower {
			return q, tooLarge()
		}
	}
	if q.bits() > maxBits {
		return q, tooLarge()
	}
	return q, nil
}

func tooLarge() error {
	return toolward.Errorf("units:too_large", "a number on the way is too large or too small")
}
