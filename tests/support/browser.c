/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "tests/support/base64_read.h"
#include "tests/support/browser.h"
#include "tests/support/http_client.h"

#define PATIENCE_S 90
#define LOOK_MS 50
#define READY "started successfully on port "

static void die(const char *what, const char *why)
{
	fprintf(stderr, "browser: %s: %s\n", what, why);
	exit(1);
}

/* ---- starting --------------------------------------------------------------- */

static bool is_program(const char *name)
{
	static const char *const places[] = {"/usr/bin", "/usr/local/bin", "/snap/bin"};
	char path[64];

	for (size_t i = 0; i < sizeof(places) / sizeof(*places); i++) {
		snprintf(path, sizeof(path), "%s/%s", places[i], name);
		if (access(path, X_OK) == 0)
			return true;
	}
	return false;
}

bool browser_is_there(void)
{
	return is_program("chromium") && is_program("chromedriver");
}

static void become_driver(const char *dir, int out)
{
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	setpgid(0, 0);
	setenv("HOME", dir, 1);
	setenv("TMPDIR", dir, 1);
	/* A preloaded sanitizer is no business of the browser's. */
	unsetenv("LD_PRELOAD");
	dup2(out, STDOUT_FILENO);
	dup2(open("/dev/null", O_WRONLY | O_CLOEXEC), STDERR_FILENO);
	execlp("chromedriver", "chromedriver", "--port=0", (char *)NULL);
	_exit(127);
}

/* The port that it says it listens on. */
static int read_port(int out)
{
	char text[4096] = "";
	size_t length = 0;
	struct pollfd more = {.fd = out, .events = POLLIN};
	const char *port;

	do {
		ssize_t got;

		if (poll(&more, 1, PATIENCE_S * 1000) != 1)
			die("chromedriver", "says nothing");
		got = read(out, text + length, sizeof(text) - 1 - length);
		if (got <= 0)
			die("chromedriver ended", text);
		length += (size_t)got;
		text[length] = '\0';
		port = strstr(text, READY);
	} while (!port || !strchr(port, '.'));
	return atoi(port + strlen(READY));
}

/* One command; ends the process when it failed. What it returned is the caller's. */
static json_t *command(const struct browser *browser, const char *method, const char *path,
		       json_t *parameters)
{
	char *body = parameters ? json_dumps(parameters, 0) : NULL;
	struct http_reply reply = http_ask(http_dial_port(browser->port), method, path, body, NULL);
	json_t *value = json_incref(json_object_get(reply.json, "value"));

	if (reply.status != 200) {
		char *why = reply.json ? json_dumps(reply.json, 0) : NULL;

		die(path, why ? why : "no answer");
	}
	json_decref(reply.json);
	json_decref(parameters);
	free(body);
	return value;
}

static json_t *in_session(const struct browser *browser, const char *method, const char *what,
			  json_t *parameters)
{
	char path[256];

	snprintf(path, sizeof(path), "%s%s", browser->session, what);
	return command(browser, method, path, parameters);
}

/* As root there is no sandbox, and a container's /dev/shm may be small. By a pipe instead of a
 * port it notices when its driver has gone. */
static json_t *capabilities(void)
{
	return json_pack("{s:{s:{s:{s:[s,s,s,s,s,s]}, s:{s:s}}}}", "capabilities", "alwaysMatch",
			 "goog:chromeOptions", "args", "--headless=new", "--no-sandbox",
			 "--disable-gpu", "--disable-dev-shm-usage", "--remote-debugging-pipe",
			 "--window-size=1280,1000", "goog:loggingPrefs", "browser", "ALL");
}

void browser_start(struct browser *browser, const char *dir)
{
	int out[2];
	json_t *session;

	if (pipe2(out, O_CLOEXEC))
		die("pipe", strerror(errno));
	*browser = (struct browser){.pid = fork()};
	if (browser->pid < 0)
		die("fork", strerror(errno));
	if (browser->pid == 0)
		become_driver(dir, out[1]);
	close(out[1]);
	browser->port = read_port(out[0]);
	session = command(browser, "POST", "/session", capabilities());
	snprintf(browser->session, sizeof(browser->session), "/session/%s",
		 json_string_value(json_object_get(session, "sessionId")));
	json_decref(session);
	/* What it says stays in the pipe: hardly anything. */
}

void browser_stop(struct browser *browser)
{
	int status;

	if (!browser->pid)
		return;
	if (browser->session[0])
		json_decref(in_session(browser, "DELETE", "", NULL));
	kill(-browser->pid, SIGKILL);
	waitpid(browser->pid, &status, 0);
	*browser = (struct browser){0};
}

/* ---- using it ----------------------------------------------------------------- */

void browser_go(struct browser *browser, const char *url)
{
	json_decref(in_session(browser, "POST", "/url", json_pack("{s:s}", "url", url)));
}

json_t *browser_run(struct browser *browser, const char *script)
{
	return in_session(browser, "POST", "/execute/sync",
			  json_pack("{s:s, s:[]}", "script", script, "args"));
}

const char *browser_text(struct browser *browser, const char *script)
{
	static char text[65536];
	json_t *value = browser_run(browser, script);

	snprintf(text, sizeof(text), "%s",
		 json_is_string(value) ? json_string_value(value) : "(no text)");
	json_decref(value);
	return text;
}

bool browser_is(struct browser *browser, const char *expression)
{
	char script[4096];
	json_t *value;
	bool is_so;

	snprintf(script, sizeof(script), "return Boolean(%s);", expression);
	value = browser_run(browser, script);
	is_so = json_is_true(value);
	json_decref(value);
	return is_so;
}

bool browser_becomes(struct browser *browser, const char *expression)
{
	for (time_t end = time(NULL) + PATIENCE_S; time(NULL) < end; poll(NULL, 0, LOOK_MS)) {
		if (browser_is(browser, expression))
			return true;
	}
	return false;
}

/* The path of an element's commands; static. */
static const char *element(struct browser *browser, const char *selector, const char *what)
{
	static char path[256];
	json_t *found =
		in_session(browser, "POST", "/element",
			   json_pack("{s:s, s:s}", "using", "css selector", "value", selector));
	const json_t *id = json_object_iter_value(json_object_iter(found));

	snprintf(path, sizeof(path), "/element/%s/%s", json_string_value(id), what);
	json_decref(found);
	return path;
}

void browser_click(struct browser *browser, const char *selector)
{
	json_decref(
		in_session(browser, "POST", element(browser, selector, "click"), json_object()));
}

void browser_type(struct browser *browser, const char *selector, const char *keys)
{
	json_decref(in_session(browser, "POST", element(browser, selector, "value"),
			       json_pack("{s:s}", "text", keys)));
}

void browser_press(struct browser *browser, const char *key)
{
	json_decref(in_session(browser, "POST", "/actions",
			       json_pack("{s:[{s:s, s:s, s:[{s:s, s:s}, {s:s, s:s}]}]}", "actions",
					 "type", "key", "id", "keyboard", "actions", "type",
					 "keyDown", "value", key, "type", "keyUp", "value", key)));
}

const char *browser_name(struct browser *browser, const char *selector)
{
	static char name[1024];
	json_t *value =
		in_session(browser, "GET", element(browser, selector, "computedlabel"), NULL);

	snprintf(name, sizeof(name), "%s", json_is_string(value) ? json_string_value(value) : "");
	json_decref(value);
	return name;
}

/* A command of the browser's own protocol. */
static void devtools(struct browser *browser, const char *name, json_t *parameters)
{
	json_decref(in_session(browser, "POST", "/goog/cdp/execute",
			       json_pack("{s:s, s:o}", "cmd", name, "params", parameters)));
}

void browser_resize(struct browser *browser, int width, int height)
{
	devtools(browser, "Emulation.setDeviceMetricsOverride",
		 json_pack("{s:i, s:i, s:i, s:b}", "width", width, "height", height,
			   "deviceScaleFactor", 1, "mobile", width < 600));
}

void browser_prefer(struct browser *browser, const char *feature, const char *value)
{
	devtools(browser, "Emulation.setEmulatedMedia",
		 json_pack("{s:[{s:s, s:s}]}", "features", "name", feature, "value", value));
}

/* ---- what it shows ------------------------------------------------------------ */

void browser_picture(struct browser *browser, const char *path)
{
	json_t *picture = in_session(browser, "GET", "/screenshot", NULL);
	size_t count;
	uint8_t *bytes = base64_read(json_string_value(picture), &count);
	FILE *out = fopen(path, "w");

	if (!bytes || !out || fwrite(bytes, 1, count, out) != count || fclose(out))
		die(path, strerror(errno));
	free(bytes);
	json_decref(picture);
}

const char *browser_errors(struct browser *browser)
{
	static char text[16384];
	json_t *log = in_session(browser, "POST", "/se/log", json_pack("{s:s}", "type", "browser"));
	size_t used = 0, i;
	const json_t *line;

	text[0] = '\0';
	json_array_foreach (log, i, line) {
		const char *message = json_string_value(json_object_get(line, "message"));

		if (strcmp(json_string_value(json_object_get(line, "level")), "SEVERE") != 0)
			continue;
		used += (size_t)snprintf(text + used, sizeof(text) - used, "%s\n", message);
		if (used >= sizeof(text))
			break;
	}
	json_decref(log);
	return text;
}
