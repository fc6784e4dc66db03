package openapi

import (
	"os"
	"testing"

	"github.com/pb33f/libopenapi"
	validator "github.com/pb33f/libopenapi-validator"
)

// TestDocumentIsOpenAPI: openapi.json is valid by the schema of OpenAPI 3.1, and each of its
// references leads somewhere.
func TestDocumentIsOpenAPI(t *testing.T) {
	content, err := os.ReadFile("../../bootstrap/api/openapi.json")
	if err != nil {
		t.Fatal(err)
	}
	document, err := libopenapi.NewDocument(content)
	if err != nil {
		t.Fatal(err)
	}
	if v := document.GetVersion(); v != "3.1.0" {
		t.Errorf("version %s", v)
	}
	if _, err := document.BuildV3Model(); err != nil {
		t.Errorf("model: %v", err)
	}
	check, errs := validator.NewValidator(document)
	if len(errs) > 0 {
		t.Fatal(errs)
	}
	valid, problems := check.ValidateDocument()
	for _, p := range problems {
		t.Errorf("%s: %s", p.Message, p.Reason)
		for _, detail := range p.SchemaValidationErrors {
			t.Errorf("  %s: %s", detail.FieldPath, detail.Reason)
		}
	}
	if !valid {
		t.Error("the document is not valid")
	}
}
