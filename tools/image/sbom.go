package main

import (
	"cmp"
	"encoding/json"
	"runtime/debug"
	"slices"
	"strings"
)

// License and Source of this repository.
const (
	License = "Apache-2.0"
	Source  = "https://github.com/troupe-vpp/troupe"
)

// spdxDocument are the parts of SPDX 2.3 in the SBOM.
type spdxDocument struct {
	Version       string             `json:"spdxVersion"`
	DataLicense   string             `json:"dataLicense"`
	ID            string             `json:"SPDXID"`
	Name          string             `json:"name"`
	Namespace     string             `json:"documentNamespace"`
	Creation      spdxCreation       `json:"creationInfo"`
	Packages      []spdxPackage      `json:"packages"`
	Relationships []spdxRelationship `json:"relationships"`
}

type spdxCreation struct {
	Created  string   `json:"created"`
	Creators []string `json:"creators"`
}

type spdxPackage struct {
	Name             string         `json:"name"`
	ID               string         `json:"SPDXID"`
	Version          string         `json:"versionInfo,omitempty"`
	DownloadLocation string         `json:"downloadLocation"`
	FilesAnalyzed    bool           `json:"filesAnalyzed"`
	LicenseConcluded string         `json:"licenseConcluded"`
	LicenseDeclared  string         `json:"licenseDeclared"`
	Copyright        string         `json:"copyrightText"`
	References       []spdxExternal `json:"externalRefs"`
}

type spdxExternal struct {
	Category string `json:"referenceCategory"`
	Type     string `json:"referenceType"`
	Locator  string `json:"referenceLocator"`
}

type spdxRelationship struct {
	From string `json:"spdxElementId"`
	Type string `json:"relationshipType"`
	To   string `json:"relatedSpdxElement"`
}

// setting returns what Go has noted of the build, for example vcs.revision; "" = nothing.
func setting(info *debug.BuildInfo, key string) string {
	for _, s := range info.Settings {
		if s.Key == key {
			return s.Value
		}
	}
	return ""
}

// sbom returns the modules that are linked into the binaries of all platforms, and Go's standard
// library, as SPDX 2.3 in JSON. It is the same for the same binaries.
func sbom(builds []*debug.BuildInfo) ([]byte, error) {
	first := builds[0]
	modules := map[string]*debug.Module{}
	for _, info := range builds {
		for _, m := range info.Deps {
			if m.Replace != nil {
				m = m.Replace
			}
			modules[m.Path+"@"+m.Version] = m
		}
	}
	ordered := []*debug.Module{{Path: "stdlib", Version: strings.TrimPrefix(first.GoVersion, "go")}}
	for _, m := range modules {
		ordered = append(ordered, m)
	}
	slices.SortFunc(ordered[1:], func(a, b *debug.Module) int {
		return cmp.Or(cmp.Compare(a.Path, b.Path), cmp.Compare(a.Version, b.Version))
	})
	own := spdxOf(&first.Main)
	own.LicenseConcluded, own.LicenseDeclared, own.DownloadLocation = License, License, "git+"+Source
	if revision := setting(first, "vcs.revision"); revision != "" {
		own.DownloadLocation += "@" + revision
	}
	document := spdxDocument{
		Version: "SPDX-2.3", DataLicense: "CC0-1.0", ID: "SPDXRef-DOCUMENT", Name: "troupe " + first.Main.Version,
		Namespace:     Source + "/spdx/" + cmp.Or(setting(first, "vcs.revision"), first.Main.Version),
		Creation:      spdxCreation{Created: cmp.Or(setting(first, "vcs.time"), "1970-01-01T00:00:00Z"), Creators: []string{"Tool: troupe-deploy-image"}},
		Packages:      []spdxPackage{own},
		Relationships: []spdxRelationship{{From: "SPDXRef-DOCUMENT", Type: "DESCRIBES", To: own.ID}},
	}
	for _, m := range ordered {
		p := spdxOf(m)
		document.Packages = append(document.Packages, p)
		document.Relationships = append(document.Relationships, spdxRelationship{From: own.ID, Type: "DEPENDS_ON", To: p.ID})
	}
	text, err := json.MarshalIndent(document, "", "  ")
	return append(text, '\n'), err
}

// spdxOf returns the package of a module, without its license.
func spdxOf(m *debug.Module) spdxPackage {
	id := "SPDXRef-" + strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '.' || r == '-' {
			return r
		}
		return '-'
	}, m.Path+"-"+m.Version)
	return spdxPackage{
		Name: m.Path, ID: id, Version: m.Version, DownloadLocation: "NOASSERTION", LicenseConcluded: "NOASSERTION", LicenseDeclared: "NOASSERTION",
		Copyright:  "NOASSERTION",
		References: []spdxExternal{{"PACKAGE-MANAGER", "purl", "pkg:golang/" + m.Path + "@" + strings.ReplaceAll(m.Version, "+", "%2B")}},
	}
}
