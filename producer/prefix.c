/* SPDX-License-Identifier: Apache-2.0 */
/* The layer number in a module's prefix, parsed strictly. */
#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>

#include <r3ring/bind.h>

#define LAYER_NUMBER_MAX 65535

/* One dot-separated component of a prefix. */
struct component {
	const char *text;
	size_t len;
};

static bool is_digit(char c)
{
	return c >= '0' && c <= '9';
}

/* What begins as a number must be one: "3a" and "-3" are no names. */
static bool component_is_number(const struct component *component)
{
	const char *text = component->text;

	if (component->len > 1 && (text[0] == '-' || text[0] == '+'))
		return is_digit(text[1]);
	return component->len > 0 && is_digit(text[0]);
}

static int component_number(const struct component *component)
{
	int number = 0;

	if (component->len > 1 && component->text[0] == '0')
		return -EINVAL;
	for (size_t i = 0; i < component->len; i++) {
		if (!is_digit(component->text[i]))
			return -EINVAL;
		number = number * 10 + (component->text[i] - '0');
		if (number > LAYER_NUMBER_MAX)
			return -EINVAL;
	}
	return number;
}

static bool component_is_layers(const struct component *component)
{
	return component->len == strlen("layers") &&
	       memcmp(component->text, "layers", component->len) == 0;
}

int r3ring_layer_from_prefix(const char *prefix)
{
	struct component component, before = {0};
	int found = -EINVAL;

	if (!prefix)
		return -EINVAL;
	for (;;) {
		component.text = prefix;
		component.len = strcspn(prefix, ".");
		if (component.len == 0)
			return -EINVAL;
		if (component_is_number(&component)) {
			if (found >= 0 || !component_is_layers(&before))
				return -EINVAL;
			found = component_number(&component);
			if (found < 0)
				return found;
		}
		prefix += component.len;
		if (*prefix++ == '\0')
			return found;
		before = component;
	}
}
