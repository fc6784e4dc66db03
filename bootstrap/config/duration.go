package config

import "time"

// Duration is a time.Duration that is written as text, "5s" or "1m30s", in configuration files.
type Duration time.Duration

// Duration returns the duration as the standard library's type.
func (d Duration) Duration() time.Duration { return time.Duration(d) }

// String returns the text without trailing zero units: "1m" instead of "1m0s".
func (d Duration) String() string {
	text := time.Duration(d).String()
	for _, zero := range []string{"m0s", "h0m"} {
		if n := len(text) - len(zero); n > 0 && text[n:] == zero {
			text = text[:n+1]
		}
	}
	return text
}

// MarshalText satisfies encoding.TextMarshaler.
func (d Duration) MarshalText() ([]byte, error) { return []byte(d.String()), nil }

// UnmarshalText satisfies encoding.TextUnmarshaler. A number without a unit is an error.
func (d *Duration) UnmarshalText(text []byte) error {
	v, err := time.ParseDuration(string(text))
	if err != nil {
		return err
	}
	*d = Duration(v)
	return nil
}

// seconds is the duration in the unit of VPP's API; Validate keeps it in range.
func (d Duration) seconds() uint32 { return uint32(time.Duration(d) / time.Second) }
