package keyvalue

import (
	"toolward/internal/host"
	"toolward/internal/wit/types"
	"toolward/internal/wit/wasi_keyvalue_atomics"
	"toolward/internal/wit/wasi_keyvalue_store"
)

type bucket struct{ raw *wasi_keyvalue_store.Bucket }

func open(name string) (bucket, *failure) {
	raw, failure := of(wasi_keyvalue_store.Open(host.Valid(name)))
	return bucket{raw}, failure
}

func (b bucket) get(key string) ([]byte, *failure) {
	value, failure := of(b.raw.Get(host.Valid(key)))
	if failure != nil || value.IsNone() {
		return nil, failure
	}
	// An empty value is not a missing one.
	return append([]byte{}, value.Some()...), nil
}

func (b bucket) set(key string, value []byte) *failure {
	_, failure := of(b.raw.Set(host.Valid(key), value))
	return failure
}

func (b bucket) delete(key string) *failure {
	_, failure := of(b.raw.Delete(host.Valid(key)))
	return failure
}

func (b bucket) exists(key string) (bool, *failure) { return of(b.raw.Exists(host.Valid(key))) }

func (b bucket) increment(key string, delta uint64) (uint64, *failure) {
	return of(wasi_keyvalue_atomics.Increment(b.raw, host.Valid(key), delta))
}

func (b bucket) keys() ([]string, *failure) {
	var keys []string
	for cursor := wit_types.None[uint64](); ; {
		page, failure := of(b.raw.ListKeys(cursor))
		if failure != nil {
			return nil, failure
		}
		keys = append(keys, page.Keys...)
		if cursor = page.Cursor; cursor.IsNone() {
			return keys, nil
		}
	}
}

func of[T any](result wit_types.Result[T, wasi_keyvalue_store.Error]) (T, *failure) {
	if result.IsOk() {
		return result.Ok(), nil
	}
	var none T
	raw := result.Err()
	switch raw.Tag() {
	case wasi_keyvalue_store.ErrorNoSuchStore:
		return none, &failure{missing: true}
	case wasi_keyvalue_store.ErrorAccessDenied:
		return none, &failure{denied: true}
	default:
		return none, &failure{text: raw.Other()}
	}
}
