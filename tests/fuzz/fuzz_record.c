/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Fuzzing the record codec: two bytes of type, then a payload. Whatever decodes
 * must encode to the same bytes but for reserved fields, and these must decode
 * to the same again; nothing may be read outside the payload.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <r3ring/record.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must(int holds)
{
	if (!holds)
		abort();
}

/* A copy that ends where its allocation ends, so that a read beyond shows. */
static uint8_t *copy_of(const uint8_t *bytes, size_t len)
{
	uint8_t *copy = malloc(len ? len : 1);

	must(copy != NULL);
	if (len)
		memcpy(copy, bytes, len);
	return copy;
}

static uint8_t *encode(const struct r3ring_record *record, size_t len)
{
	uint8_t *out = malloc(len);

	must(out != NULL);
	must(r3ring_record_size(record) == len);
	must(r3ring_record_encode(record, out, len, NULL) == (long)len);
	return out;
}

static void round_trip(const struct r3ring_record *record, size_t len)
{
	struct r3ring_record again;
	uint8_t *first = encode(record, len), *second;

	must(r3ring_record_decode(&again, record->type, first, len, NULL) == 0);
	second = encode(&again, len);
	must(memcmp(first, second, len) == 0);
	free(second);
	free(first);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct r3ring_record record;
	struct r3ring_error err;
	uint8_t *payload;
	uint16_t type;

	if (size < sizeof(type))
		return 0;
	memcpy(&type, data, sizeof(type));
	size -= sizeof(type);
	payload = copy_of(data + sizeof(type), size);
	if (r3ring_record_decode(&record, type, payload, size, &err) == 0)
		round_trip(&record, size);
	free(payload);
	return 0;
}
