// Package watch calls a function when the files of a directory may have changed, for the sources
// that read files. It watches the directory, not the files, to notice editors that replace files
// and ConfigMap volumes that swap a symlink. Where no events arrive, a slow poll finds changes.
package watch
