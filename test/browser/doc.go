// Package browser tests the page of the agent in a real browser, Debian's Chromium: every view with
// 10 and with 10,000 services. Where there is none its tests are skipped and say so.
package browser
