package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, os.Args[1:], os.Stdout, os.Stderr); err != nil {
		fmt.Fprintln(os.Stderr, "image:", err)
		os.Exit(1)
	}
}

// run parses the arguments, builds and prints the digest of the archive.
func run(ctx context.Context, arguments []string, out, usage io.Writer) error {
	flags := flag.NewFlagSet("image", flag.ContinueOnError)
	flags.SetOutput(usage)
	file := flags.String("o", "troupe.tar", "write the archive to `FILE`")
	platforms := flags.String("platforms", "linux/amd64,linux/arm64", "build for these platforms")
	name := flags.String("name", DefaultName, "name of the image")
	source := flags.String("source", ".", "root `DIR` of the repository")
	if err := flags.Parse(arguments); err != nil {
		return err
	}
	if flags.NArg() > 0 {
		return fmt.Errorf("unexpected argument %q", flags.Arg(0))
	}
	sum, err := build(ctx, settings{source: *source, file: *file, name: *name, platforms: strings.Split(*platforms, ",")})
	if err != nil {
		return err
	}
	fmt.Fprintf(out, "%s  %s  %s\n", sum, *name, *file)
	return nil
}
