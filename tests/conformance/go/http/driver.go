// The conformance tool that needs the network. A program of its own, as its
// component imports wasi:http and none of wasi:keyvalue.
package main

import (
	"toolward"
	"toolward/fetch"
)

type input struct {
	URL string `json:"url"`
}

type answer struct {
	Status int    `json:"status"`
	Body   string `json:"body"`
}

type output struct {
	Result answer `json:"result"`
}

func get(call *toolward.Call[input]) (output, error) {
	response, err := fetch.Get(call.Input.URL)
	if err != nil {
		return output{}, err
	}
	return output{answer{response.Status, string(response.Body)}}, nil
}

func init() { toolward.Tool("conformance.http", get) }

func main() {}
