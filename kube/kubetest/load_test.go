package kubetest

import "testing"

func TestDecodeRefusesUnknownFields(t *testing.T) {
	for name, text := range map[string]string{
		"top level":    `{"schemaVersion":1,"cases":[],"extra":1}`,
		"case":         `{"cases":[{"name":"a","extra":1}]}`,
		"row":          `{"cases":[{"expect":[{"frontend":"a","extra":1}]}]}`,
		"step outcome": `{"cases":[{"steps":[{"name":"a","packets":[{"extra":1}]}]}]}`,
		"API object":   `{"cases":[{"services":[{"spec":{"extra":1}}]}]}`,
		"second value": `{"cases":[]} {}`,
	} {
		if _, err := decode([]byte(text)); err == nil {
			t.Errorf("%s: decoded %s", name, text)
		}
	}
	if _, err := decode([]byte(`{"cases":[{"name":"a","expect":[]}]}`)); err != nil {
		t.Errorf("good file: %v", err)
	}
}
