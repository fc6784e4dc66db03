package config

import (
	"fmt"
	"os"
	"strings"

	"github.com/spf13/cobra"
)

// Flags are the flags of a command that override fields of a configuration.
type Flags struct {
	cmd *cobra.Command
	// values receives the values of all flags; Load copies only the values of flags on the command
	// line.
	values *Agent
	fields []field
	file   string
}

// AddFlags adds --config and one flag for every field that has a flag tag. If only is not empty, it
// adds flags only for the fields in it. The help text is the first sentence of the field's
// documentation.
func AddFlags(cmd *cobra.Command, only ...string) *Flags {
	f := &Flags{cmd: cmd, values: Defaults()}
	wanted := map[string]bool{}
	for _, name := range only {
		wanted[name] = true
	}
	comments := fieldComments()
	for _, one := range schema() {
		name := one.tag.Get("flag")
		if name == "" || len(only) > 0 && !wanted[name] {
			continue
		}
		f.fields = append(f.fields, one)
		f.bind(one, name, usage(comments[one.owner+"."+one.goName], one.tag.Get("enum")))
	}
	cmd.Flags().StringVar(&f.file, "config", os.Getenv("TROUPE_CONFIG"), "file with the configuration (kind "+Kind+"); flags override it; default: $TROUPE_CONFIG")
	return f
}

// bind adds the flag of one field.
func (f *Flags) bind(one field, name, usage string) {
	flags := f.cmd.Flags()
	switch to := one.value(f.values).Addr().Interface().(type) {
	case *string:
		flags.StringVar(to, name, *to, usage)
	case *bool:
		flags.BoolVar(to, name, *to, usage)
	case *[]string:
		flags.StringSliceVar(to, name, *to, usage)
	case *OneOrMore:
		flags.StringSliceVar((*[]string)(to), name, *to, usage)
	default:
		panic("config: flag of an unsupported type: " + name)
	}
}

// Load returns the configuration of a command line: defaults, then the file of --config, then the
// flags. It returns syntax problems of the file as Errors; it does not validate the values.
func (f *Flags) Load() (*Document, error) {
	doc, err := NewDocument(), error(nil)
	if f.file != "" {
		data, readErr := os.ReadFile(f.file)
		if readErr != nil {
			return nil, fmt.Errorf("read configuration: %w", readErr)
		}
		doc, err = Decode(data, f.file)
	}
	for _, one := range f.fields {
		name := one.tag.Get("flag")
		if f.cmd.Flags().Changed(name) {
			one.value(doc.Agent).Set(one.value(f.values))
			doc.flags[one.path] = name
		}
	}
	return doc, err
}

// LoadForStart is Load followed by ValidateForStart.
func (f *Flags) LoadForStart() (*Agent, error) {
	doc, err := f.Load()
	if doc == nil {
		return nil, err
	}
	if err := Join(err, doc.ValidateForStart()); err != nil {
		return nil, err
	}
	return doc.Agent, nil
}

// usage is the first sentence of a documentation without its full stop, with the allowed values
// unless the sentence names them.
func usage(doc, enum string) string {
	text, _, _ := strings.Cut(doc, ". ")
	text = strings.TrimSuffix(text, ".")
	text = strings.ReplaceAll(text, "`", "'")
	if enum != "" && !strings.Contains(text, strings.SplitN(enum, ",", 2)[0]) {
		text += " (" + strings.ReplaceAll(enum, ",", ", ") + ")"
	}
	return text
}
