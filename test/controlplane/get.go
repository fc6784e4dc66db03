package controlplane

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
)

// Get asks an agent and decodes the answer into v, unless that is nil. It returns what went wrong,
// for Eventually.
func Get(client *http.Client, url string, v any) string {
	answer, err := client.Get(url)
	if err != nil {
		return err.Error()
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	switch {
	case err != nil:
		return err.Error()
	case answer.StatusCode != http.StatusOK:
		return fmt.Sprintf("%s: %s", answer.Status, text)
	case v == nil:
		return ""
	}
	if err := json.Unmarshal(text, v); err != nil {
		return fmt.Sprintf("decode %s: %v", url, err)
	}
	return ""
}
