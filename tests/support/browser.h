/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A real browser without a screen: Debian's Chromium, driven over WebDriver
 * (https://www.w3.org/TR/webdriver2/) by its chromedriver. It ends with the process that
 * started it, however that ends.
 */
#ifndef TESTS_SUPPORT_BROWSER_H
#define TESTS_SUPPORT_BROWSER_H

#include <stdbool.h>
#include <sys/types.h>

#include <jansson.h>

#define BROWSER_ABSENT "no chromium and chromedriver here (Debian: chromium, chromium-driver)"

struct browser {
	pid_t pid; /* of chromedriver, and of its process group */
	int port;
	char session[128]; /* path of the session */
};

/* Whether there is one on this machine. */
bool browser_is_there(void);

/*
 * Starts one; ends the test's process when it cannot.
 *
 * @dir: an existing directory, for all that it writes. The caller removes it.
 */
void browser_start(struct browser *browser, const char *dir);
void browser_stop(struct browser *browser);

/* Goes to an address, and waits until the page is loaded. */
void browser_go(struct browser *browser, const char *url);

/* Runs a script as a function's body; what it returns, the caller's. A script that throws ends
 * the test's process. */
json_t *browser_run(struct browser *browser, const char *script);

/* The same of one that returns a text, which is copied: static. */
const char *browser_text(struct browser *browser, const char *script);

/* Whether the expression is true now. */
bool browser_is(struct browser *browser, const char *expression);

/* Looks until the expression is true, for 90 seconds at most; returns whether it was. */
bool browser_becomes(struct browser *browser, const char *expression);

/* Clicks at an element, types keys into it; by its CSS selector. */
void browser_click(struct browser *browser, const char *selector);
void browser_type(struct browser *browser, const char *selector, const char *keys);

/* Presses a key, wherever the focus is. */
void browser_press(struct browser *browser, const char *key);

/* What assistive technology calls an element, which is copied: static. */
const char *browser_name(struct browser *browser, const char *selector);

#define BROWSER_TAB "\xee\x80\x84"
#define BROWSER_RIGHT "\xee\x80\x94" /* keys of WebDriver's, in UTF-8 */
#define BROWSER_DOWN "\xee\x80\x95"
#define BROWSER_ENTER "\xee\x80\x87"

/* Another window; another preference ("prefers-color-scheme", "dark"). */
void browser_resize(struct browser *browser, int width, int height);
void browser_prefer(struct browser *browser, const char *feature, const char *value);

/* Writes what is seen as PNG. */
void browser_picture(struct browser *browser, const char *path);

/* What failed or was refused, as its console tells it, one message a line; static. */
const char *browser_errors(struct browser *browser);

#endif
