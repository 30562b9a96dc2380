// Package keyvalue opens buckets of key-value pairs, which the contract names in
// requires.database (reading) or mutates: database:NAME, and the operator grants.
// What a driver writes stays for the later calls of the same publisher and
// principal.
//
// A component that uses this package imports wasi:keyvalue, and one that does so
// without declaring a database is refused.
package keyvalue

import (
	"encoding/json"

	"toolward"
)

// A Bucket is an open bucket. Its operations fail with the code unauthorised where
// the bucket is not declared or granted, or is written and may only be read, and
// with upstream_error where the store fails.
type Bucket struct {
	name string
	host bucket
}

// Open opens the bucket that the contract calls database:NAME.
func Open(name string) (*Bucket, error) {
	host, failure := open(name)
	if failure != nil {
		if failure.denied {
			failure.missing = true
		}
		return nil, failure.explain(name)
	}
	return &Bucket{name, host}, nil
}

// Get returns the key's value, nil where it has none.
func (b *Bucket) Get(key string) ([]byte, error) {
	value, failure := b.host.get(key)
	return value, failure.explain(b.name)
}

// GetJSON reads the key's value as encoding/json does, and tells whether it has one.
func (b *Bucket) GetJSON(key string, value any) (bool, error) {
	text, err := b.Get(key)
	if err != nil || text == nil {
		return false, err
	}
	if err := json.Unmarshal(text, value); err != nil {
		return false, toolward.Errorf("upstream_error", "the value of %s in the bucket %s: %w", key, b.name, err)
	}
	return true, nil
}

// Set gives the key a value, in place of the one that it may have.
func (b *Bucket) Set(key string, value []byte) error {
	return b.host.set(key, value).explain(b.name)
}

// SetJSON does the same with a value's JSON.
func (b *Bucket) SetJSON(key string, value any) error {
	text, err := json.Marshal(value)
	if err != nil {
		return err
	}
	return b.Set(key, text)
}

// Delete removes the key; one that is missing is no error.
func (b *Bucket) Delete(key string) error { return b.host.delete(key).explain(b.name) }

// Exists tells whether the key has a value.
func (b *Bucket) Exists(key string) (bool, error) {
	exists, failure := b.host.exists(key)
	return exists, failure.explain(b.name)
}

// Increment adds to the number under the key, from 0 where there is none, and
// returns the sum: one step, whatever other calls do at the same time. The number
// is kept as decimal digits.
func (b *Bucket) Increment(key string, delta uint64) (uint64, error) {
	sum, failure := b.host.increment(key, delta)
	return sum, failure.explain(b.name)
}

// Keys returns all keys, in no promised order.
func (b *Bucket) Keys() ([]string, error) {
	keys, failure := b.host.keys()
	return keys, failure.explain(b.name)
}

// A failure is the store's error.
type failure struct {
	denied, missing bool
	text            string
}

func (f *failure) explain(bucket string) error {
	switch {
	case f == nil:
		return nil
	case f.missing:
		return toolward.Errorf("unauthorised", "the bucket %s is not declared, or not granted", bucket)
	case f.denied:
		return toolward.Errorf("unauthorised", "the bucket %s may not be written: declare `mutates: database:%s`", bucket, bucket)
	default:
		return toolward.Errorf("upstream_error", "the bucket %s: %s", bucket, f.text)
	}
}
