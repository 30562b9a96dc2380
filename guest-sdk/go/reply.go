package toolward

import "toolward/internal/host"

// A Reply is an output with content blocks beside it: what a model or a person
// reads. Without blocks the host shows the value's JSON as text.
//
//	func sum(call *toolward.Call[[]float64]) (toolward.Reply[float64], error)
type Reply[O any] struct {
	Value   O
	Content []Block
}

type replier interface{ parts() (any, []Block) }

func (reply Reply[O]) parts() (any, []Block) { return reply.Value, reply.Content }

// A Role is for whom a block is meant.
type Role uint8

const (
	// User is the person behind the caller.
	User Role = iota
	// Assistant is the model.
	Assistant
)

// A Block is one content block: what one of [Text], [Image], [Audio], [Link],
// [EmbeddedText] and [EmbeddedBytes] made. The other fields may be set then.
type Block struct {
	// MIMEType is that of an image, a recording, a link or an embedded resource.
	MIMEType string
	// Title, Description and Size (in bytes) are a link's.
	Title, Description string
	Size               uint64
	// Audience is empty where the block is for all.
	Audience []Role
	// Priority goes from 0.0 (least important) to 1.0; nil is no preference.
	Priority *float64

	kind      host.Kind
	text, uri string
	data      []byte
}

// Text is plain text.
func Text(text string) Block { return Block{kind: host.Text, text: text} }

// Image is an image of this media type, as the file's bytes.
func Image(mimeType string, data []byte) Block {
	return Block{kind: host.Image, MIMEType: mimeType, data: data}
}

// Audio is a recording of this media type, as the file's bytes.
func Audio(mimeType string, data []byte) Block {
	return Block{kind: host.Audio, MIMEType: mimeType, data: data}
}

// Link is a resource that is only referred to.
func Link(uri, name string) Block { return Block{kind: host.Link, uri: uri, text: name} }

// EmbeddedText is a text resource, carried in the result itself.
func EmbeddedText(uri, text string) Block {
	return Block{kind: host.EmbeddedText, uri: uri, text: text}
}

// EmbeddedBytes is a binary resource, carried in the result itself.
func EmbeddedBytes(uri string, data []byte) Block {
	return Block{kind: host.EmbeddedBytes, uri: uri, data: data}
}

// raw is the block as the ABI carries it. A role that it has no number for would end
// the call.
func (block Block) raw() (host.Block, error) {
	audience := make([]uint8, len(block.Audience))
	for i, role := range block.Audience {
		if role > Assistant {
			return host.Block{}, Errorf("internal", "a block's audience has the role %d, which is neither User nor Assistant", role)
		}
		audience[i] = uint8(role)
	}
	return host.Block{
		Kind:        block.kind,
		Text:        block.text,
		URI:         block.uri,
		Data:        block.data,
		MIMEType:    block.MIMEType,
		Title:       block.Title,
		Description: block.Description,
		Size:        block.Size,
		Audience:    audience,
		Priority:    block.Priority,
	}, nil
}
