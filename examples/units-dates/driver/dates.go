package main

import (
	"strconv"
	"strings"
	"time"

	"toolward"
)

type dateInput struct {
	Date  string `json:"date"`
	Add   span   `json:"add"`
	Until string `json:"until"`
}

type span struct {
	Years       int `json:"years"`
	Months      int `json:"months"`
	Weeks       int `json:"weeks"`
	Days        int `json:"days"`
	WorkingDays int `json:"working_days"`
	Hours       int `json:"hours"`
	Minutes     int `json:"minutes"`
	Seconds     int `json:"seconds"`
}

type dateOutput struct {
	Date        string      `json:"date"`
	Weekday     string      `json:"weekday"`
	Week        string      `json:"week"`
	DayOfYear   int         `json:"day_of_year"`
	DaysInMonth int         `json:"days_in_month"`
	LeapYear    bool        `json:"leap_year"`
	Difference  *difference `json:"difference,omitempty"`
}

type difference struct {
	Years        int    `json:"years"`
	Months       int    `json:"months"`
	Days         int    `json:"days"`
	Hours        int    `json:"hours"`
	Minutes      int    `json:"minutes"`
	Seconds      int    `json:"seconds"`
	TotalDays    int    `json:"total_days"`
	TotalSeconds int64  `json:"total_seconds"`
	WorkingDays  int    `json:"working_days"`
	Text         string `json:"text"`
}

// A moment is a date, with a time of day where one was given, at an offset from UTC where
// one was given.
type moment struct {
	time    time.Time
	hasTime bool
	hasZone bool
}

func dates(call *toolward.Call[dateInput]) (dateOutput, error) {
	from, err := read(call.Input.Date)
	if err != nil {
		return dateOutput{}, err
	}
	if from, err = from.plus(call.Input.Add); err != nil {
		return dateOutput{}, err
	}
	year, week := from.time.ISOWeek()
	output := dateOutput{
		Date:        from.String(),
		Weekday:     strings.ToLower(from.time.Weekday().String()),
		Week:        pad(year, 4) + "-W" + pad(week, 2),
		DayOfYear:   from.time.YearDay(),
		DaysInMonth: daysIn(from.time.Year(), from.time.Month()),
		LeapYear:    daysIn(from.time.Year(), time.February) == 29,
	}
	if call.Input.Until != "" {
		until, err := read(call.Input.Until)
		if err != nil {
			return output, err
		}
		if from.hasZone != until.hasZone {
			return output, toolward.Errorf("dates:mixed", "either both moments have an offset from UTC or neither has: %s, %s", from, until)
		}
		output.Difference = between(from, until)
	}
	return output, nil
}

var layouts = []struct {
	layout           string
	hasTime, hasZone bool
}{
	{"2006-01-02", false, false},
	{"2006-01-02T15:04", true, false},
	{"2006-01-02T15:04:05", true, false},
	{"2006-01-02T15:04Z07:00", true, true},
	{"2006-01-02T15:04:05Z07:00", true, true},
}

func read(text string) (moment, error) {
	written := strings.ToUpper(strings.TrimSpace(text))
	if len(written) > 10 && written[10] == ' ' {
		written = written[:10] + "T" + written[11:]
	}
	for _, known := range layouts {
		if parsed, err := time.Parse(known.layout, written); err == nil {
			return moment{parsed, known.hasTime, known.hasZone}.inRange()
		}
	}
	return moment{}, toolward.Errorf("dates:invalid", "%q is no date such as 2026-02-28 or 2026-02-28T13:30:00+01:00", text)
}

func (m moment) String() string {
	switch {
	case m.hasZone:
		return m.time.Format(time.RFC3339)
	case m.hasTime:
		return m.time.Format("2006-01-02T15:04:05")
	default:
		return m.time.Format(time.DateOnly)
	}
}

// inRange holds dates to what their form can show.
func (m moment) inRange() (moment, error) {
	if year := m.time.Year(); year < 1 || year > 9999 {
		return m, toolward.Errorf("dates:out_of_range", "years go from 1 to 9999")
	}
	// No fractions of seconds: what a fraction's layout let in is left out.
	m.time = m.time.Truncate(time.Second)
	return m, nil
}

// plus adds the larger units first, as a person would.
func (m moment) plus(add span) (moment, error) {
	m.time = addMonths(m.time, add.Years*12+add.Months)
	if _, err := m.inRange(); err != nil {
		return m, err
	}
	m.time = m.time.AddDate(0, 0, add.Weeks*7+add.Days)
	if _, err := m.inRange(); err != nil {
		return m, err
	}
	m.time = addWorkingDays(m.time, add.WorkingDays)
	if add.Hours != 0 || add.Minutes != 0 || add.Seconds != 0 {
		m.hasTime = true
		m.time = m.time.Add(time.Duration(add.Hours)*time.Hour +
			time.Duration(add.Minutes)*time.Minute + time.Duration(add.Seconds)*time.Second)
	}
	return m.inRange()
}

// addMonths keeps the day of the month, or takes the month's last where it is shorter.
func addMonths(t time.Time, months int) time.Time {
	year, month, dayOfMonth := t.Date()
	all := year*12 + int(month) - 1 + months
	year, month = floorDiv(all, 12), time.Month(all-floorDiv(all, 12)*12+1)
	hour, minute, second := t.Clock()
	return time.Date(year, month, min(dayOfMonth, daysIn(year, month)), hour, minute, second, 0, t.Location())
}

func floorDiv(a, b int) int {
	quotient := a / b
	if a%b < 0 {
		quotient--
	}
	return quotient
}

func daysIn(year int, month time.Month) int {
	return time.Date(year, month+1, 0, 0, 0, 0, 0, time.UTC).Day()
}

func isWorkingDay(t time.Time) bool {
	return t.Weekday() != time.Saturday && t.Weekday() != time.Sunday
}

func addWorkingDays(t time.Time, count int) time.Time {
	step := 1
	if count < 0 {
		step, count = -1, -count
	}
	// Five of them are a week, wherever it starts.
	weeks := max(0, count/5-1)
	t = t.AddDate(0, 0, step*7*weeks)
	for count -= 5 * weeks; count > 0; {
		t = t.AddDate(0, 0, step)
		if isWorkingDay(t) {
			count--
		}
	}
	return t
}

// workingDays counts those from the first date on, without the last.
func workingDays(from, until time.Time) int {
	from, until = midnight(from), midnight(until)
	if until.Before(from) {
		return -workingDays(until, from)
	}
	weeks := int((until.Unix()-from.Unix())/86400) / 7
	count := weeks * 5
	for t := from.AddDate(0, 0, 7*weeks); t.Before(until); t = t.AddDate(0, 0, 1) {
		if isWorkingDay(t) {
			count++
		}
	}
	return count
}

func midnight(t time.Time) time.Time {
	year, month, dayOfMonth := t.Date()
	return time.Date(year, month, dayOfMonth, 0, 0, 0, 0, time.UTC)
}

// between is from one moment to the other; all of it is negative where the other is
// earlier.
func between(from, until moment) *difference {
	a, b := from.time, until.time.In(from.time.Location())
	seconds := b.Unix() - a.Unix()
	result := difference{
		TotalDays:    int(seconds / 86400),
		TotalSeconds: seconds,
		WorkingDays:  workingDays(a, b),
	}
	factor := 1
	if b.Before(a) {
		a, b, factor = b, a, -1
	}
	months := (b.Year()-a.Year())*12 + int(b.Month()) - int(a.Month())
	if addMonths(a, months).After(b) {
		months--
	}
	rest := int(b.Unix() - addMonths(a, months).Unix())
	parts := []int{months / 12, months % 12, rest / 86400, rest / 3600 % 24, rest / 60 % 60, rest % 60}
	var words []string
	for i, name := range []string{"year", "month", "day", "hour", "minute", "second"} {
		if parts[i] == 0 {
			continue
		}
		if parts[i] > 1 {
			name += "s"
		}
		words = append(words, strconv.Itoa(parts[i])+" "+name)
		parts[i] *= factor
	}
	result.Years, result.Months, result.Days = parts[0], parts[1], parts[2]
	result.Hours, result.Minutes, result.Seconds = parts[3], parts[4], parts[5]
	result.Text = strings.Join(words, ", ")
	if result.Text == "" {
		result.Text = "no time"
	} else if factor < 0 {
		result.Text += " before"
	}
	return &result
}

func pad(number, width int) string {
	text := strconv.Itoa(number)
	return strings.Repeat("0", max(0, width-len(text))) + text
}
