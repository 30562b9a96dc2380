package main

import (
	"errors"
	"strings"
	"testing"

	"toolward"
	"toolward/toolwardtest"
)

func calculated(t *testing.T, text string) (result, error) {
	t.Helper()
	return toolwardtest.Invoke(calculate, map[string]any{"expression": text})
}

func TestExpressions(t *testing.T) {
	for text, want := range map[string]string{
		"0.1 + 0.2":                     "0.3",
		"1/3 * 3":                       "1",
		"2 + 3 * 4 ^ 2 - -1":            "51",
		"-2^2":                          "-4",
		"(2 + 3) * 4":                   "20",
		"5 ft 4 in to cm":               "162.56 cm",
		"5 ft in cm":                    "152.4 cm",
		"4 in in cm":                    "10.16 cm",
		"(2 ft + 3 in) in in":           "27 in",
		"10 km / 2 h to km/h":           "5 km/h",
		"60 mph -> m/s":                 "26.8224 m/s",
		"100 km/h * 90 min to km":       "150 km",
		"1 kg + 1 lb":                   "1.45359237 kg",
		"3 * 2 kg":                      "6 kg",
		"9.8 m/s^2 * 70 kg":             "686 N",
		"5 kg m / s^2":                  "5 N",
		"20 °C to degF":                 "68 °F",
		"-40 °F to °C":                  "-40 °C",
		"25 °C to K":                    "298.15 K",
		"0 K to celsius":                "-273.15 °C",
		"1.5 GB to MiB":                 "1430.51147461 MiB",
		"1 KB to bit":                   "8000 bit",
		"100 Mbps * 1 min to MB":        "750 MB",
		"2 m² to cm^2":                  "20000 cm^2",
		"1 m3 to L":                     "1000 L",
		"3 cm ^ 2":                      "3 cm^2",
		"15% * 80":                      "12",
		"1 kWh to MJ":                   "3.6 MJ",
		"90 deg to rad":                 "1.57079632679 rad",
		"2 cups to mL":                  "473.176473 mL",
		"1 mi to Kilometres":            "1.609344 Kilometres",
		"30 mpg":                        "",
		"8 gal / 240 mi to L / km":      "0.0784048611111 L / km",
		"1/2 cup to tbsp":               "8 tbsp",
		"1/2 in to mm":                  "12.7 mm",
		"1/4":                           "0.25",
		"1/2^2":                         "0.25",
		"1 / 2 s":                       "0.5 Hz",
		"1 hp to W":                     "745.699871582 W",
		"1 BTU to kJ":                   "1.05505585262 kJ",
		"30 psi to bar":                 "2.06842718795 bar",
		"1 tsp to mL":                   "4.92892159375 mL",
		"1 month to days":               "30.4375 days",
		"150% of":                       "",
		"15%":                           "15 %",
		"1 A * 2 V":                     "2 W",
		"1 light_year per year to km/s": "299792.458 km/s",
		"2 eV to J":                     "3.204353268e-19 J",
		"1 m * 1 kg":                    "1 m*kg",
		"1 kg / m^2 / s":                "1 kg/m^2/s",
		"5 µm to nm":                    "5000 nm",
	} {
		got, err := calculated(t, text)
		if want == "" {
			if err == nil {
				t.Errorf("%s = %s", text, got.Text)
			}
		} else if err != nil || got.Text != want {
			t.Errorf("%s = %q, %v; want %q", text, got.Text, err, want)
		}
	}
}

func TestMistakes(t *testing.T) {
	for text, code := range map[string]string{
		"":                    "units:syntax",
		"5 +":                 "units:syntax",
		"(5":                  "units:syntax",
		"5)":                  "units:syntax",
		"1,000 m":             "units:syntax",
		"5 5":                 "units:syntax",
		"5 ft 3":              "units:syntax",
		"5 m to":              "units:syntax",
		"5 m to 3":            "units:syntax",
		"2 ^ 0.5":             "units:syntax",
		"5 $":                 "units:syntax",
		"..5":                 "units:syntax",
		"5 \xff":              "units:syntax",
		"5 parsnips":          "units:unknown",
		"5 mB":                "units:unknown",
		"5 kim":               "units:unknown",
		"5 m + 3 s":           "units:mismatch",
		"5 m to kg":           "units:mismatch",
		"5 °C to m":           "units:mismatch",
		"5 °C + 3 K":          "units:temperature",
		"5 °C/min":            "units:temperature",
		"5 m °C":              "units:temperature",
		"5 km to K °C":        "units:temperature",
		"1/0":                 "units:division_by_zero",
		"1/(1 m - 1 m)":       "units:division_by_zero",
		"0^-1":                "units:division_by_zero",
		"9^9^9":               "units:syntax",
		"9^8192":              "units:too_large",
		"(9^1000)^1000":       "units:too_large",
		"1e999":               "units:too_large",
		"1e99999999999999999": "units:too_large",
		"m^31":                "units:too_large",
		"1e300 * 1e300":       "units:too_large",
		strings.Repeat("(", 400) + "1" + strings.Repeat(")", 400): "units:syntax",
		strings.Repeat("-", 400) + "1":                            "units:syntax",
	} {
		got, err := calculated(t, text)
		var failed *toolward.Error
		if !errors.As(err, &failed) || failed.Code != code {
			t.Errorf("%s = %v, %v; want %s", text, got, err, code)
		}
	}
}

// Each unit is found by its own name with the same meaning, so that results can be used.
func TestNames(t *testing.T) {
	for name, u := range named {
		again, found := lookUp(u.name)
		if !found || again.factor.Cmp(u.factor) != 0 || again.dim != u.dim {
			t.Errorf("%s is shown as %s, which is not the same", name, u.name)
		}
	}
}

func TestDates(t *testing.T) {
	type in = map[string]any
	for _, test := range []struct {
		name  string
		input in
		want  string
		text  string
	}{
		{"a month's last day", in{"date": "2026-01-31", "add": in{"months": 1}}, "2026-02-28 saturday 2026-W09", ""},
		{"a leap day", in{"date": "2024-02-29", "add": in{"years": 1}}, "2025-02-28 friday 2025-W09", ""},
		{"months before the year", in{"date": "2026-01-31", "add": in{"months": -14}}, "2024-11-30 saturday 2024-W48", ""},
		{"the week of another year", in{"date": "2027-01-01"}, "2027-01-01 friday 2026-W53", ""},
		{"working days", in{"date": "2026-11-20", "add": in{"working_days": 6}}, "2026-11-30 monday 2026-W49", ""},
		{"working days back", in{"date": "2026-11-22", "add": in{"working_days": -11}}, "2026-11-06 friday 2026-W45", ""},
		{"hours give a date a time", in{"date": "2026-11-23", "add": in{"hours": 25}}, "2026-11-24T01:00:00 tuesday 2026-W48", ""},
		{"an offset stays", in{"date": "2026-11-23T23:30+02:00", "add": in{"minutes": 45}}, "2026-11-24T00:15:00+02:00 tuesday 2026-W48", ""},
		{"from date to date", in{"date": "2026-01-31", "until": "2027-03-01"}, "2026-01-31 saturday 2026-W05", "1 year, 1 month, 1 day"},
		{"and back", in{"date": "2027-03-01", "until": "2026-01-31"}, "2027-03-01 monday 2027-W09", "1 year, 1 month, 1 day before"},
		{"between zones", in{"date": "2026-11-23T12:00:00Z", "until": "2026-11-23T12:00:00-05:30"}, "2026-11-23T12:00:00Z monday 2026-W48", "5 hours, 30 minutes"},
		{"no difference", in{"date": "2026-11-23 12:00", "until": "2026-11-23t12:00:00"}, "2026-11-23T12:00:00 monday 2026-W48", "no time"},
	} {
		got, err := toolwardtest.Invoke(dates, test.input)
		if err != nil {
			t.Errorf("%s: %v", test.name, err)
			continue
		}
		if shown := got.Date + " " + got.Weekday + " " + got.Week; shown != test.want {
			t.Errorf("%s: %s, want %s", test.name, shown, test.want)
		}
		if test.text != "" && (got.Difference == nil || got.Difference.Text != test.text) {
			t.Errorf("%s: %+v, want %s", test.name, got.Difference, test.text)
		}
	}
}

// Weeks at once and day by day are the same.
func TestWorkingDays(t *testing.T) {
	first, _ := read("0001-01-01")
	last, _ := read("9999-12-31")
	if count := workingDays(first.time, last.time); count != 2608614 {
		t.Errorf("%d in all", count)
	}
	start, _ := read("2026-11-20")
	for first := range 7 {
		from := start.time.AddDate(0, 0, first)
		for count := -30; count <= 30; count++ {
			slow, left := from, count
			for left != 0 {
				step := 1
				if count < 0 {
					step = -1
				}
				slow = slow.AddDate(0, 0, step)
				if isWorkingDay(slow) {
					left -= step
				}
			}
			if got := addWorkingDays(from, count); !got.Equal(slow) {
				t.Errorf("%s + %d = %s, want %s", from, count, got, slow)
			}
			counted := 0
			for at := from; at.Before(slow); at = at.AddDate(0, 0, 1) {
				if isWorkingDay(at) {
					counted++
				}
			}
			if got := workingDays(from, slow); count > 0 && got != counted {
				t.Errorf("from %s to %s: %d, want %d", from, slow, got, counted)
			}
		}
	}
}

func TestWrongDates(t *testing.T) {
	type in = map[string]any
	for code, inputs := range map[string][]in{
		"dates:invalid": {{"date": "2026-02-29"}, {"date": "23.11.2026"}, {"date": "2026-11-23T25:00"}, {"date": ""}, {"date": "2026-11-23", "until": "x"}},
		"dates:mixed":   {{"date": "2026-11-23", "until": "2026-11-23T00:00Z"}},
		"dates:out_of_range": {
			{"date": "0000-01-01"}, {"date": "9999-12-31", "add": in{"days": 1}}, {"date": "2026-01-01", "add": in{"years": -10000}},
			{"date": "9999-12-31T23:59:59", "add": in{"seconds": 1}}, {"date": "2026-01-01", "add": in{"working_days": 100000000}},
		},
	} {
		for _, input := range inputs {
			got, err := toolwardtest.Invoke(dates, input)
			var failed *toolward.Error
			if !errors.As(err, &failed) || failed.Code != code {
				t.Errorf("%v = %+v, %v; want %s", input, got, err, code)
			}
		}
	}
}
