//go:build !wasip1

package keyvalue

import (
	"slices"
	"strconv"

	"toolward/internal/host"
)

// What stands in for a bucket in a driver's own tests.
type bucket map[string][]byte

func open(name string) (bucket, *failure) {
	values, granted := host.Granted.Buckets[name]
	if !granted {
		return nil, &failure{missing: true}
	}
	return values, nil
}

func (b bucket) get(key string) ([]byte, *failure) { return b[key], nil }

func (b bucket) set(key string, value []byte) *failure {
	b[key] = append([]byte{}, value...)
	return nil
}

func (b bucket) delete(key string) *failure {
	delete(b, key)
	return nil
}

func (b bucket) exists(key string) (bool, *failure) {
	_, found := b[key]
	return found, nil
}

func (b bucket) increment(key string, delta uint64) (uint64, *failure) {
	var number uint64
	if value, found := b[key]; found {
		var err error
		if number, err = strconv.ParseUint(string(value), 10, 64); err != nil {
			return 0, &failure{text: "the value is not a number"}
		}
	}
	if number+delta < number {
		return 0, &failure{text: "the sum has more than 64 bits"}
	}
	return number + delta, b.set(key, strconv.AppendUint(nil, number+delta, 10))
}

func (b bucket) keys() ([]string, *failure) {
	keys := make([]string, 0, len(b))
	for key := range b {
		keys = append(keys, key)
	}
	slices.Sort(keys)
	return keys, nil
}
