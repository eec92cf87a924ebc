package control

import (
	"encoding/json"

	"github.com/pysandboxes/pysandboxes/bindings/border"
	"github.com/pysandboxes/pysandboxes/core/unpickle"
)

// resultName is ResultName's request.
type resultName struct {
	Module     string               `json:"module"`
	Name       string               `json:"name"`
	Definition *unpickle.Definition `json:"definition"` // null where the application has not loaded it
}

// ResultName judges a name that a result of remote-result-mode=objects looks up. The request is JSON: module, name, and definition
// (module, name, class, standard, bases) of what they led to, or null. The answer is JSON: listed (a name of the fixed table of
// the standard library's value types) and why (what the guard has against it, as half a sentence, "" where nothing).
func ResultName(request string) (string, error) {
	var r resultName
	if err := json.Unmarshal([]byte(request), &r); err != nil {
		return "", err
	}
	answer := struct {
		Listed bool   `json:"listed"`
		Why    string `json:"why"`
	}{Listed: unpickle.Listed(r.Module, r.Name)}
	if r.Definition != nil {
		answer.Why, _ = r.Definition.Refused()
	}
	return border.JSON(answer)
}

// ResultPath names the place in a validated result at which a name is looked up: result['rows'][3].owner. The request is JSON: data
// (the pickle in base64), buffers (how many come beside it), module, name. The answer is a JSON string.
func ResultPath(request string) (string, error) {
	var r struct {
		Data    []byte `json:"data"`
		Buffers int    `json:"buffers"`
		resultName
	}
	if err := json.Unmarshal([]byte(request), &r); err != nil {
		return "", err
	}
	return border.JSON(unpickle.Locate(r.Data, r.Buffers, r.Module, r.Name))
}
