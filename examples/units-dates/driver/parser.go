package main

import (
	"math/big"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"toolward"
)

// evaluate calculates an expression:
//
//	conversion = sum [("to" | "in" | "as" | "->") product]
//	sum        = product {("+" | "-") product}
//	product    = factor {("*" | "/" | "per") factor}
//	factor     = ("-" | "+") factor | power
//	power      = value ["^" integer]
//	value      = amount [units] {amount units} | units | "(" sum ")" [units]
//	amount     = number | digits "/" digits, without space and before units
//	units      = unit ["^" integer] {unit ["^" integer]}
//
// A number with its units binds closest: 10 km / 2 h is a speed, 5 ft 4 in a length, and
// 1/2 cup half a cup.
func evaluate(text string) (quantity, error) {
	p := parser{text: text}
	if err := p.advance(); err != nil {
		return quantity{}, err
	}
	value, err := p.sum()
	if err != nil {
		return value, err
	}
	if p.isConversion() {
		if err := p.advance(); err != nil {
			return value, err
		}
		target, err := p.target()
		if err != nil {
			return value, err
		}
		value, err = value.in(target)
		if err != nil {
			return value, err
		}
	}
	if p.kind != ended {
		return value, p.unexpected()
	}
	return value, nil
}

const (
	ended = iota
	number
	word
	sign
)

// Expressions in parentheses in one another.
const maxDepth = 50

// Digits of an exponent's number, such as 300 in 1e300.
const maxExponent = 400

type parser struct {
	text  string
	at    int
	depth int
	// The token that comes next, and where it starts.
	kind  int
	token string
	start int
}

func (p *parser) fail(format string, arguments ...any) error {
	before := utf8.RuneCountInString(p.text[:p.start])
	arguments = append(arguments, before+1)
	return toolward.Errorf("units:syntax", format+" at character %d", arguments...)
}

func (p *parser) unexpected() error {
	if p.kind == ended {
		return p.fail("the expression ends too early,")
	}
	return p.fail("%q is not expected", p.token)
}

// advance reads the next token.
func (p *parser) advance() error {
	rest := p.text[p.at:]
	trimmed := strings.TrimLeftFunc(rest, unicode.IsSpace)
	p.at += len(rest) - len(trimmed)
	p.start = p.at
	if trimmed == "" {
		p.kind, p.token = ended, ""
		return nil
	}
	first, size := utf8.DecodeRuneInString(trimmed)
	switch {
	case isDigit(first) || first == '.':
		size = numberLength(trimmed)
		p.kind = number
	case isName(first):
		size = strings.IndexFunc(trimmed, func(r rune) bool { return !isName(r) && !isDigit(r) })
		if size < 0 {
			size = len(trimmed)
		}
		p.kind = word
	case strings.HasPrefix(trimmed, "->") || strings.HasPrefix(trimmed, "**"):
		size, p.kind = 2, sign
	default:
		p.kind = sign
	}
	p.token = trimmed[:size]
	p.at += size
	switch p.token {
	case "%":
		p.kind = word
	case "→":
		p.token = "->"
	case "**":
		p.token = "^"
	case "×", "·":
		p.token = "*"
	case "÷":
		p.token = "/"
	case "−", "–":
		p.token = "-"
	case ",":
		return p.fail("a comma separates neither thousands nor decimals: write 1000.5,")
	}
	return nil
}

func isDigit(r rune) bool { return r >= '0' && r <= '9' }

func isName(r rune) bool {
	return unicode.IsLetter(r) || r == '_' || r == '°' || r == '℃' || r == '℉'
}

// numberLength is how long the number at the start is. An `e` without digits is a name.
func numberLength(text string) int {
	at := 0
	digits := func() {
		for at < len(text) && isDigit(rune(text[at])) {
			at++
		}
	}
	digits()
	if at < len(text) && text[at] == '.' {
		at++
		digits()
	}
	if at < len(text) && (text[at] == 'e' || text[at] == 'E') {
		end := at
		at++
		if at < len(text) && (text[at] == '+' || text[at] == '-') {
			at++
		}
		first := at
		if digits(); at == first {
			return end
		}
	}
	return at
}

func (p *parser) is(tokens ...string) bool {
	for _, token := range tokens {
		if p.token == token && (p.kind == sign || p.kind == word) {
			return true
		}
	}
	return false
}

func (p *parser) isConversion() bool { return p.is("to", "in", "as", "->") }

func (p *parser) sum() (quantity, error) {
	value, err := p.product()
	for err == nil && p.is("+", "-") {
		factor := int64(1)
		if p.token == "-" {
			factor = -1
		}
		var other quantity
		if err = p.advance(); err == nil {
			if other, err = p.product(); err == nil {
				value, err = value.plus(other, factor)
			}
		}
	}
	return value, err
}

func (p *parser) product() (quantity, error) {
	value, err := p.factor()
	for err == nil && p.is("*", "/", "per") {
		power := -1
		if p.token == "*" {
			power = 1
		}
		var other quantity
		if err = p.advance(); err == nil {
			if other, err = p.factor(); err == nil {
				value, err = value.times(other, power)
			}
		}
	}
	return value, err
}

func (p *parser) factor() (quantity, error) {
	if !p.is("-", "+") {
		return p.power()
	}
	negative := p.token == "-"
	if p.depth++; p.depth > maxDepth {
		return quantity{}, p.fail("too deep,")
	}
	defer func() { p.depth-- }()
	if err := p.advance(); err != nil {
		return quantity{}, err
	}
	value, err := p.factor()
	if err == nil && negative {
		value.number = new(big.Rat).Neg(value.number)
	}
	return value, err
}

func (p *parser) power() (quantity, error) {
	value, err := p.value()
	if err != nil || !p.is("^") {
		return value, err
	}
	power, err := p.exponent()
	if err != nil {
		return value, err
	}
	return value.raised(power)
}

// exponent reads `^` and an integer.
func (p *parser) exponent() (int, error) {
	if err := p.advance(); err != nil {
		return 0, err
	}
	negative := p.is("-")
	if negative {
		if err := p.advance(); err != nil {
			return 0, err
		}
	}
	power, err := strconv.Atoi(p.token)
	if p.kind != number || err != nil || power > maxBits {
		return 0, p.fail("a power is a whole number,")
	}
	if negative {
		power = -power
	}
	return power, p.advance()
}

func (p *parser) value() (quantity, error) {
	switch {
	case p.is("("):
		return p.inside()
	case p.kind == number:
		return p.measured()
	case p.kind == word:
		return p.units()
	default:
		return quantity{}, p.unexpected()
	}
}

func (p *parser) inside() (quantity, error) {
	if p.depth++; p.depth > maxDepth {
		return quantity{}, p.fail("too deep,")
	}
	defer func() { p.depth-- }()
	if err := p.advance(); err != nil {
		return quantity{}, err
	}
	value, err := p.sum()
	if err != nil {
		return value, err
	}
	if !p.is(")") {
		return value, p.fail("a parenthesis is not closed,")
	}
	if err := p.advance(); err != nil {
		return value, err
	}
	if p.kind == word && !p.is("per") && !p.isConversion() {
		units, err := p.units()
		if err != nil {
			return value, err
		}
		return value.of(units)
	}
	return value, nil
}

// measured reads a number and its units, more than once for 5 ft 4 in.
func (p *parser) measured() (quantity, error) {
	value, err := p.part()
	for err == nil && p.kind == number {
		if value.unit == nil {
			return value, p.unexpected()
		}
		var more quantity
		if more, err = p.part(); err == nil {
			if more.unit == nil {
				return value, p.fail("a unit is missing")
			}
			value, err = value.plus(more, 1)
		}
	}
	return value, err
}

func (p *parser) part() (quantity, error) {
	value := quantity{}
	if _, exponent, found := strings.Cut(strings.ToLower(p.token), "e"); found {
		if power, err := strconv.Atoi(exponent); err != nil || power > maxExponent || power < -maxExponent {
			return value, tooLarge()
		}
	}
	parsed, ok := new(big.Rat).SetString(p.token)
	if !ok {
		return value, p.unexpected()
	}
	value.number = parsed
	if fraction := p.fraction(); fraction != nil {
		value.number = fraction
	}
	if err := p.advance(); err != nil {
		return value, err
	}
	// `5 in` is a length; `5 ft in cm` a conversion.
	if p.kind != word || p.is("per", "to", "as") {
		return value, nil
	}
	units, err := p.units()
	if err != nil {
		return value, err
	}
	return value.of(units)
}

// fraction reads 1/2 where a unit follows, up to its last digit; else it reads nothing and
// returns nil.
func (p *parser) fraction() *big.Rat {
	below, found := strings.CutPrefix(p.text[p.at:], "/")
	digits := 0
	for digits < len(below) && isDigit(rune(below[digits])) {
		digits++
	}
	if !found || digits == 0 || strings.Trim(p.token, "0123456789") != "" {
		return nil
	}
	next := parser{text: p.text, at: p.at + 1 + digits}
	if err := next.advance(); err != nil || next.kind != word || next.is("per", "to", "as") {
		return nil
	}
	value, ok := new(big.Rat).SetString(p.token + "/" + below[:digits])
	if ok {
		p.at += 1 + digits
	}
	return value
}

// of is a plain number of a unit.
func (q quantity) of(units quantity) (quantity, error) {
	if units.absolute == nil {
		value, err := q.times(units, 1)
		if q.dim == (dimension{}) {
			value.unit = units.unit
		}
		return value, err
	}
	if q.dim != (dimension{}) {
		return q, q.usable(units)
	}
	units.number = q.number
	return units, nil
}

func (p *parser) units() (quantity, error) {
	value, err := p.one()
	for err == nil && p.kind == word && !p.is("per") && !p.isConversion() {
		var other quantity
		if other, err = p.one(); err == nil {
			value, err = value.times(other, 1)
		}
	}
	return value, err
}

// superscripts are powers that stand in a unit's name.
var superscripts = map[string]int{"²": 2, "³": 3}

// one reads a unit and its power.
func (p *parser) one() (quantity, error) {
	name, power := p.token, 1
	u, found := lookUp(name)
	if last := len(name) - 1; !found && (name[last] == '2' || name[last] == '3') {
		// m2 is m^2.
		u, found = lookUp(name[:last])
		power = int(name[last] - '0')
	}
	if !found {
		return quantity{}, toolward.Errorf("units:unknown", "no unit is called %q", name)
	}
	if err := p.advance(); err != nil {
		return quantity{}, err
	}
	value := quantity{number: u.factor, dim: u.dim, unit: &u}
	if u.offset != nil {
		value = quantity{number: ratio("1"), dim: u.dim, absolute: &u}
	}
	if value, found := superscripts[p.token]; found {
		power = value
		if err := p.advance(); err != nil {
			return quantity{}, err
		}
	} else if p.is("^") {
		read, err := p.exponent()
		if err != nil {
			return quantity{}, err
		}
		power *= read
	}
	if power == 1 {
		return value, nil
	}
	return value.raised(power)
}

// target reads the unit of a conversion; the result is shown with what was written.
func (p *parser) target() (quantity, error) {
	start := p.start
	if p.kind != word {
		return quantity{}, p.fail("a unit is missing")
	}
	value, err := p.product()
	if err != nil || value.absolute != nil {
		return value, err
	}
	if p.kind == number || p.kind == word {
		return value, p.unexpected()
	}
	if value.number.Sign() == 0 {
		return value, p.fail("a unit is missing")
	}
	written := strings.Join(strings.Fields(p.text[start:p.start]), " ")
	value.unit = &unit{written, value.dim, value.number, nil}
	return value, nil
}
