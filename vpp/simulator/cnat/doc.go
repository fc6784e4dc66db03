// Package cnat is the configuration of the cnat plugin of the simulated VPP: translations, and what decides about source NAT. It has no data
// path: packets pass the model as if there were no translation.
package cnat
