// Package browser tests the page of package console in a real browser, Chromium.
// It is a module of its own because of what drives that. It is found where the
// variable CHROME_PATH says, on PATH, or where packages put it; else it is
// fetched once, from npm (70 MB, Linux on x86-64), into the user's cache folder.
//
// The screenshots in docs/console are made by
//
//	cd idem/console/browser && go test -run TestScreenshots -screenshots ../../../docs/console
package browser
