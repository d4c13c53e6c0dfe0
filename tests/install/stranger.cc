// SPDX-License-Identifier: Apache-2.0
//
// A C++ program outside of the project: encodes a record and decodes it again,
// and reads a layer number. Built against the installed headers and library.
#include <cstdint>
#include <cstdio>
#include <vector>

#include <r3ring/bind.h>
#include <r3ring/host_stream.h>
#include <r3ring/proto.h>
#include <r3ring/reader.h>
#include <r3ring/record.h>

int main()
{
	r3ring_record lost{};
	lost.type = R3RING_LOST;
	lost.u.lost.steps = 3;
	lost.u.lost.cause = R3RING_CAUSE_BUFFER_FULL;

	std::vector<std::uint64_t> buffer(r3ring_record_size(&lost) / 8 + 1);
	r3ring_error error{};
	const long written =
		r3ring_record_encode(&lost, buffer.data(), buffer.size() * 8, &error);
	if (written <= 0) {
		std::fprintf(stderr, "encode: %ld %s\n", written, error.text);
		return 1;
	}
	r3ring_record decoded{};
	const int rc = r3ring_record_decode(&decoded, R3RING_LOST, buffer.data(),
					    static_cast<std::size_t>(written), &error);
	if (rc || decoded.u.lost.steps != 3) {
		std::fprintf(stderr, "decode: %d %s\n", rc, error.text);
		return 1;
	}
	const int layer = r3ring_layer_from_prefix("model.layers.3.ffn.experts");
	if (layer != 3) {
		std::fprintf(stderr, "layer: %d\n", layer);
		return 1;
	}
	return 0;
}
