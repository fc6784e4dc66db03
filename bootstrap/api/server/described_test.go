package server_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/troupe-vpp/troupe/bootstrap/api"
)

var openAPI = sync.OnceValue(func() (document object) {
	if err := json.Unmarshal(api.OpenAPI(), &document); err != nil {
		panic("openapi.json: " + err.Error())
	}
	return document
})

// described compares an answer with the OpenAPI document: its status, its type of content and its
// body. A field of the body without a description is an error. It returns the path of the
// operation.
func described(method, target string, code int, contentType string, body []byte) (path string, err error) {
	u, err := url.Parse(target)
	if err != nil {
		return "", err
	}
	path, resource := operationsOf(u.EscapedPath())
	if path == "" {
		return "", fmt.Errorf("no path of the document fits %s", target)
	}
	operation, _ := resource[strings.ToLower(method)].(object)
	if operation == nil && code < 400 {
		return path, fmt.Errorf("%s has no method %s", path, method)
	}
	response := object{"$ref": "#/components/responses/Error"}
	if operation != nil {
		responses := operation["responses"].(object)
		response = responses["default"].(object)
		if one, ok := responses[strconv.Itoa(code)].(object); ok {
			response = one
		} else if code < 400 {
			return path, fmt.Errorf("status %d is not described", code)
		}
	}
	kind, _, _ := strings.Cut(contentType, ";")
	content, ok := resolve(response)["content"].(object)[kind].(object)
	if !ok {
		return path, fmt.Errorf("content of type %q is not described", contentType)
	}
	if kind != "application/json" {
		return path, nil
	}
	var value any
	if err := json.Unmarshal(body, &value); err != nil {
		return path, fmt.Errorf("no JSON: %w", err)
	}
	return path, errors.Join(conforms("", value, content["schema"].(object))...)
}

// operationsOf returns the path of the document that fits a path of a request best: the one with
// the fewest parameters.
func operationsOf(requested string) (best string, operations object) {
	paths := openAPI()["paths"].(object)
	for _, path := range slices.Sorted(maps.Keys(paths)) {
		pattern := regexp.QuoteMeta(path)
		for name, parameter := range map[string]string{"path": "[^:]+?", "source": ".+", "namespace": "[^/]+", "name": "[^/]+", "verb": "[a-z]+"} {
			pattern = strings.ReplaceAll(pattern, `\{`+name+`\}`, parameter)
		}
		if !regexp.MustCompile("^" + pattern + "$").MatchString(requested) {
			continue
		}
		if better := len(path) > len(best) || strings.Count(path, "{") < strings.Count(best, "{"); best == "" || better {
			best, operations = path, paths[path].(object)
		}
	}
	return best, operations
}

// resolve follows a reference.
func resolve(o object) object {
	ref, ok := o["$ref"].(string)
	if !ok {
		return o
	}
	at := openAPI()
	for part := range strings.SplitSeq(strings.TrimPrefix(ref, "#/"), "/") {
		at = at[part].(object)
	}
	return at
}

// conforms returns the parts of a value that differ from its schema. It knows the keywords that the
// document uses.
func conforms(at string, value any, schema object) (errs []error) {
	schema = resolve(schema)
	wrong := func(format string, args ...any) { errs = append(errs, fmt.Errorf(at+": "+format, args...)) }
	switch kind, _ := schema["type"].(string); kind {
	case "": // anything
	case "string":
		if _, ok := value.(string); !ok {
			wrong("%v is no string", value)
		}
	case "boolean":
		if _, ok := value.(bool); !ok {
			wrong("%v is no boolean", value)
		}
	case "number", "integer":
		n, ok := value.(float64)
		least, bounded := schema["minimum"].(float64)
		if !ok || kind == "integer" && n != math.Trunc(n) || bounded && n < least {
			wrong("%v is no %s", value, kind)
		}
	case "array":
		list, ok := value.([]any)
		if !ok {
			wrong("null or no array: %v", value)
		}
		for i, item := range list {
			errs = append(errs, conforms(fmt.Sprintf("%s[%d]", at, i), item, schema["items"].(object))...)
		}
	case "object":
		fields, ok := value.(object)
		if !ok {
			wrong("%v is no object", value)
		}
		errs = append(errs, fieldsConform(at, fields, schema)...)
	default:
		wrong("the check does not know the type %s", kind)
	}
	return errs
}

// fieldsConform is conforms for the fields of an object.
func fieldsConform(at string, fields, schema object) (errs []error) {
	properties, closed := schema["properties"].(object)
	required, _ := schema["required"].([]any)
	for _, name := range required {
		if _, ok := fields[name.(string)]; !ok {
			errs = append(errs, fmt.Errorf("%s: %s is missing", at, name))
		}
	}
	for _, name := range slices.Sorted(maps.Keys(fields)) {
		if property, ok := properties[name].(object); ok {
			errs = append(errs, conforms(strings.TrimPrefix(at+"."+name, "."), fields[name], property)...)
		} else if closed {
			errs = append(errs, fmt.Errorf("%s: %s is not described", at, name))
		}
	}
	return errs
}
