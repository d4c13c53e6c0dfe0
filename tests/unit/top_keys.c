/* SPDX-License-Identifier: Apache-2.0 */
/* Keys of `r3ring top`: what they do, and that all who tell of them tell of the same. */
#include <criterion/criterion.h>

#include <stdio.h>
#include <string.h>

#include "tests/support/top_stage.h"
#include "tools/top.h"

#define KEYS_TEXT 256

static struct top_stage stage;

static void free_stage(void)
{
	top_stage_free(&stage);
}

TestSuite(top_keys, .fini = free_stage);

/* ---- ways back -------------------------------------------------------------- */

Test(top_keys, a_page_is_left_by_its_own_key_by_escape_and_by_q)
{
	static const struct {
		int key;
		enum top_page page;
	} pages[] = {{'d', TOP_LOSSES}, {'t', TOP_TABLE}, {'?', TOP_HELP}, {'h', TOP_HELP}};

	for (size_t i = 0; i < sizeof(pages) / sizeof(*pages); i++) {
		const int back[] = {pages[i].key, TOP_KEY_ESCAPE, 'q'};

		for (size_t j = 0; j < sizeof(back) / sizeof(*back); j++) {
			struct top top = {.page = TOP_MAIN};

			cr_expect(top_key(&top, pages[i].key));
			cr_expect_eq(top.page, pages[i].page);
			cr_expect(top_key(&top, back[j]), "'%c', %d ends it", pages[i].key,
				  back[j]);
			cr_expect_eq(top.page, TOP_MAIN, "'%c', %d", pages[i].key, back[j]);
		}
	}
}

Test(top_keys, from_one_page_the_key_of_another_leads_there)
{
	struct top top = {.page = TOP_LOSSES};

	top_key(&top, 't');
	cr_expect_eq(top.page, TOP_TABLE);
	top_key(&top, '?');
	cr_expect_eq(top.page, TOP_HELP);
	top_key(&top, 'd');
	cr_expect_eq(top.page, TOP_LOSSES);
}

Test(top_keys, on_the_heatmap_q_ends_and_escape_does_nothing)
{
	struct top top = {.page = TOP_MAIN};

	cr_expect(top_key(&top, TOP_KEY_ESCAPE));
	cr_expect_eq(top.page, TOP_MAIN);
	cr_expect_not(top_key(&top, 'q'));
}

/* ---- who tells of them ------------------------------------------------------- */

/* Letters, and words of more: " q Esc i c ". */
static void add_keys(char keys[KEYS_TEXT], const char *from)
{
	while (*from) {
		size_t length = strcspn(from, " ,");
		size_t used = strlen(keys);

		if (length)
			snprintf(keys + used, KEYS_TEXT - used, "%.*s ", (int)length, from);
		from += length;
		from += strspn(from, " ,");
	}
}

static bool has_key(const char *keys, const char *key)
{
	char word[32];

	snprintf(word, sizeof(word), " %s ", key);
	return strstr(keys, word) != NULL;
}

/* Of the help: what stands in the first eleven columns, down to the first empty row. */
static void keys_of_help(char keys[KEYS_TEXT])
{
	top_stage_make(&stage, "{\"daemon\":{},\"channels\":[]}");
	stage.frame.page = TOP_HELP;
	top_stage_draw(&stage, 50, 100);
	for (uint32_t row = 2; top_stage_row(&stage, row)[0]; row++) {
		char label[12];

		snprintf(label, sizeof(label), "%s", top_stage_row(&stage, row));
		add_keys(keys, label);
	}
}

/* Of the manual: the first words of the list behind "Keys:". */
static void keys_of_manual(char keys[KEYS_TEXT])
{
	FILE *in = fopen("docs/man/r3ring-top.1", "r");
	char line[512];
	bool within = false;

	cr_assert(in);
	while (fgets(line, sizeof(line), in)) {
		char *c = strstr(line, "\\&");

		line[strcspn(line, "\n")] = '\0';
		if (c)
			memmove(c, c + 2, strlen(c + 2) + 1);
		if (strcmp(line, "Keys:") == 0)
			within = true;
		else if (within && strncmp(line, ".El", 3) == 0)
			break;
		else if (within && strncmp(line, ".It Ic ", 7) == 0)
			add_keys(keys, strncmp(line + 7, "p , No ", 7) ? line + 7 : "p space");
	}
	fclose(in);
}

static void expect_all(const char *these, const char *those, const char *who)
{
	char copy[KEYS_TEXT], *rest = NULL;

	snprintf(copy, sizeof(copy), "%s", these);
	for (char *key = strtok_r(copy, " ", &rest); key; key = strtok_r(NULL, " ", &rest))
		cr_expect(has_key(those, key), "%s does not tell of \"%s\"", who, key);
}

Test(top_keys, help_and_manual_tell_of_the_same_keys)
{
	char help[KEYS_TEXT] = " ", manual[KEYS_TEXT] = " ";

	keys_of_help(help);
	keys_of_manual(manual);
	cr_expect_geq(strlen(help), strlen(" q Esc i c w l p space r d t ? h arrows "), "%s", help);
	expect_all(help, manual, "the manual");
	add_keys(help, "PgUp PgDn Home End"); /* behind "arrows" */
	expect_all(manual, help, "the help");
}

Test(top_keys, the_last_row_tells_of_keys_that_the_help_has)
{
	char help[KEYS_TEXT] = " ";
	const char *row, *word;
	unsigned int keys = 0;

	keys_of_help(help);
	stage.frame.keys = true;
	stage.frame.page = TOP_MAIN;
	top_stage_draw(&stage, 24, 200);
	row = top_stage_row(&stage, 23);
	cr_expect_eq(strncmp(row, "q quit ? help d losses t table ", 31), 0, "%s", row);
	for (word = row; word && *word; word = strchr(word, ' '), word += word != NULL) {
		char key[2] = {word[0], '\0'};

		if (word[1] != ' ')
			continue;
		cr_expect(has_key(help, key), "the help does not tell of \"%s\"", key);
		keys++;
	}
	cr_expect_eq(keys, 10);
	stage.frame.page = TOP_LOSSES;
	top_stage_draw(&stage, 24, 200);
	cr_expect_eq(strncmp(top_stage_row(&stage, 23), "q back ? help d load t table ", 29), 0);
}
