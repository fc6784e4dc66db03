package main

import (
	"cmp"
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"time"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, os.Args[1:], os.Stdout, os.Stderr); err != nil {
		fmt.Fprintln(os.Stderr, "image:", err)
		os.Exit(1)
	}
}

// run parses the arguments, builds and prints the digest of the archive. Progress and usage go to
// said.
func run(ctx context.Context, arguments []string, out, said io.Writer) error {
	flags := flag.NewFlagSet("image", flag.ContinueOnError)
	flags.SetOutput(said)
	file := flags.String("o", "../troupe.tar", "write the archive to `FILE`")
	platforms := flags.String("platforms", "linux/amd64,linux/arm64", "build for these platforms")
	name := flags.String("name", "", "`NAME` of the image in the archive (default: the name of -push, or "+DefaultName+")")
	registry := flags.String("push", "", "push it to `REGISTRY/NAME:TAG` with skopeo, which must be installed")
	source := flags.String("source", "..", "root `DIR` of the repository")
	if err := flags.Parse(arguments); err != nil {
		return err
	}
	if flags.NArg() > 0 {
		return fmt.Errorf("unexpected argument %q", flags.Arg(0))
	}
	*name = cmp.Or(*name, *registry, DefaultName)
	sum, err := build(ctx, settings{
		source: *source, file: *file, name: *name, platforms: strings.Split(*platforms, ","), progress: progress{to: said, every: 10 * time.Second},
	})
	if err != nil {
		return err
	}
	if *registry != "" {
		if err := push(ctx, *file, *registry, said); err != nil {
			return err
		}
	}
	fmt.Fprintf(out, "%s  %s  %s  %s\n", sum, *name, *file, sbomFile(*file))
	return nil
}
