//go:build !linux

package cli

import "os"

// widthOf does not know terminals of other systems.
func widthOf(*os.File) (width int, terminal bool) { return 0, false }
