/* SPDX-License-Identifier: Apache-2.0 */
/* How alike two signatures are. */
#include <math.h>
#include <stdbool.h>
#include <string.h>

#include <r3ring/signature.h>

/* False when either has nothing in this layer. Sums of products of 65535 experts fit. */
static bool layer_cosine(const uint16_t *a, const uint16_t *b, uint32_t experts, double *cosine)
{
	uint64_t both = 0, first = 0, second = 0;

	for (uint32_t e = 0; e < experts; e++) {
		both += (uint64_t)a[e] * b[e];
		first += (uint64_t)a[e] * a[e];
		second += (uint64_t)b[e] * b[e];
	}
	if (!first || !second)
		return false;
	*cosine = (double)both / (sqrt((double)first) * sqrt((double)second));
	return true;
}

double r3ring_signature_similarity(const uint16_t *a, const uint16_t *b, uint32_t layers,
				   uint32_t experts)
{
	double sum = 0, one;
	uint32_t compared = 0;

	for (uint32_t layer = 0; layer < layers; layer++) {
		size_t at = (size_t)layer * experts;

		if (!layer_cosine(a + at, b + at, experts, &one))
			continue;
		sum += one;
		compared++;
	}
	return compared ? sum / compared : 0;
}

void r3ring_signature_bitmap(const uint16_t *counts, uint32_t layers, uint32_t experts,
			     uint64_t *bits)
{
	memset(bits, 0, R3RING_SIGNATURE_WORDS(layers, experts) * sizeof(*bits));
	for (uint32_t layer = 0; layer < layers; layer++) {
		size_t first = (size_t)layer * experts;
		uint64_t sum = 0;

		for (uint32_t e = 0; e < experts; e++)
			sum += counts[first + e];
		for (uint32_t e = 0; e < experts; e++)
			if ((uint64_t)counts[first + e] * experts > sum)
				bits[(first + e) / 64] |= UINT64_C(1) << ((first + e) % 64);
	}
}

double r3ring_signature_overlap(const uint64_t *a, const uint64_t *b, size_t words)
{
	uint64_t both = 0, either = 0;

	for (size_t i = 0; i < words; i++) {
		both += (uint64_t)__builtin_popcountll(a[i] & b[i]);
		either += (uint64_t)__builtin_popcountll(a[i] | b[i]);
	}
	return either ? (double)both / (double)either : 0;
}
