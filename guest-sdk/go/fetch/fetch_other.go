//go:build !wasip1

package fetch

func send(request *Request, _ target) (*Response, error) { return nil, request.denied() }
