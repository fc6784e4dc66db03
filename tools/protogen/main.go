// Command protogen regenerates the Go code of every .proto file in a directory.
//
// It replaces protoc with Go modules: protocompile parses and links the files, the official
// protoc-gen-go plugin writes the code. A file generated.sum beside the code has checksums of input
// and output, so that a test finds stale code without the generator (messages/generated_test.go).
//
// Usage: go run ./protogen DIR
package main

import (
	"bytes"
	"context"
	"crypto/sha256"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"

	"github.com/bufbuild/protocompile"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protodesc"
	"google.golang.org/protobuf/types/pluginpb"
)

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: protogen DIR")
		os.Exit(2)
	}
	if err := generate(context.Background(), os.Args[1]); err != nil {
		fmt.Fprintln(os.Stderr, "protogen:", err)
		os.Exit(1)
	}
}

func generate(ctx context.Context, dir string) error {
	sources, err := filepath.Glob(filepath.Join(dir, "*.proto"))
	if err != nil || len(sources) == 0 {
		return fmt.Errorf("no .proto files in %s: %w", dir, err)
	}
	names := make([]string, len(sources))
	for i, s := range sources {
		names[i] = filepath.Base(s)
	}
	slices.Sort(names)

	request, err := compile(ctx, dir, names)
	if err != nil {
		return err
	}
	response, err := runPlugin(ctx, request)
	if err != nil {
		return err
	}
	written := names
	for _, f := range response.File {
		if err := os.WriteFile(filepath.Join(dir, f.GetName()), []byte(f.GetContent()), 0o644); err != nil {
			return err
		}
		written = append(written, f.GetName())
	}
	return writeSums(dir, written)
}

// compile links the sources and makes the request that protoc sends to a plugin.
func compile(ctx context.Context, dir string, names []string) (*pluginpb.CodeGeneratorRequest, error) {
	compiler := protocompile.Compiler{
		Resolver: protocompile.WithStandardImports(&protocompile.SourceResolver{ImportPaths: []string{dir}}),
		// comments of the .proto files become Go documentation
		SourceInfoMode: protocompile.SourceInfoStandard,
	}
	files, err := compiler.Compile(ctx, names...)
	if err != nil {
		return nil, err
	}
	request := &pluginpb.CodeGeneratorRequest{FileToGenerate: names, Parameter: proto.String("paths=source_relative")}
	for _, f := range files {
		request.ProtoFile = append(request.ProtoFile, protodesc.ToFileDescriptorProto(f))
	}
	return request, nil
}

func runPlugin(ctx context.Context, request *pluginpb.CodeGeneratorRequest) (*pluginpb.CodeGeneratorResponse, error) {
	in, err := proto.Marshal(request)
	if err != nil {
		return nil, err
	}
	cmd := exec.CommandContext(ctx, "go", "tool", "protoc-gen-go")
	cmd.Stdin, cmd.Stderr = bytes.NewReader(in), os.Stderr
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("run protoc-gen-go: %w", err)
	}
	response := &pluginpb.CodeGeneratorResponse{}
	if err := proto.Unmarshal(out, response); err != nil {
		return nil, err
	}
	if response.Error != nil {
		return nil, fmt.Errorf("protoc-gen-go: %s", response.GetError())
	}
	return response, nil
}

func writeSums(dir string, names []string) error {
	var sums bytes.Buffer
	for _, name := range names {
		content, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			return err
		}
		fmt.Fprintf(&sums, "%x  %s\n", sha256.Sum256(content), name)
	}
	return os.WriteFile(filepath.Join(dir, "generated.sum"), sums.Bytes(), 0o644)
}
