package api

import (
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
	"time"
)

// Column is one column of a table of structs: a field with the tag `column:"TITLE"`.
type Column struct {
	Title string
	// Wide is true for a column that may be left out: `column:"TITLE,wide"`.
	Wide bool
	// Tone is how good false, or any text, is: `tone:"bad"`; "" = only states have a Tone.
	Tone string
	// Link is the path of the web page that a cell completes: `link:"/services/"`; "" = none.
	Link string
	// ago is true for a time that is shown as an age: `column:"TITLE,ago"`.
	ago   bool
	field reflect.StructField
}

// Columns are the columns of a type, in the order of its fields.
func Columns(t reflect.Type) (all []Column) {
	for _, f := range reflect.VisibleFields(t) {
		if title, options, _ := strings.Cut(f.Tag.Get("column"), ","); title != "" {
			all = append(all, Column{title, strings.Contains(options, "wide"), f.Tag.Get("tone"), f.Tag.Get("link"), strings.Contains(options, "ago"), f})
		}
	}
	return all
}

// Cell is the content of the column for a struct. A field with a name like AgeSeconds is a
// duration.
func (c *Column) Cell(of reflect.Value) any {
	switch v := of.FieldByIndex(c.field.Index).Interface().(type) {
	case time.Time:
		if c.ago {
			return Ago(v)
		}
		return Clock(v)
	case []string:
		return strings.Join(v, ",")
	case json.RawMessage:
		return string(v)
	case float64:
		return Elapsed(v)
	case uint32:
		if strings.HasSuffix(c.field.Name, "Seconds") {
			return strings.TrimPrefix(fmt.Sprintf("%ds", v), "0s")
		}
		return v
	default:
		return v
	}
}

// Clock formats a time, in UTC as in the log; zero is empty.
func Clock(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.UTC().Format("2006-01-02T15:04:05.000Z")
}

// Ago is the age of a time; "" = the time is not known.
func Ago(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return Age(time.Since(t)) + " ago"
}

// Elapsed is a number of seconds as a duration.
func Elapsed(s float64) time.Duration {
	return time.Duration(s * float64(time.Second)).Round(time.Microsecond)
}

// Age is an age for people.
func Age(d time.Duration) string {
	switch {
	case d < time.Second:
		return "less than 1 s"
	case d < time.Minute:
		return fmt.Sprintf("%d s", int(d.Seconds()))
	case d < time.Hour:
		return fmt.Sprintf("%d min", int(d.Minutes()))
	case d < 48*time.Hour:
		return fmt.Sprintf("%d h", int(d.Hours()))
	default:
		return fmt.Sprintf("%d days", int(d.Hours()/24))
	}
}
