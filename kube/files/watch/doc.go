// Package watch calls a function when the files of a directory may have changed. The directory is
// watched, not its files, so that editors that replace files and ConfigMap volumes that swap a
// symlink are seen; a slow poll helps where no events arrive. It serves the sources that read
// files.
package watch
